# SPDX-License-Identifier: Apache-2.0
"""The portable wheel with the oldest and the newest Python, ONNX Runtime, PyTorch and OpenVINO.

Fresh environments hold the wheel and one runtime from the package index, and no compiler is found. PyTorch's packages
may take gigabytes.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from packaging.version import Version

import polyop
from tests.support import elsewhere
from tests.support.exported_nodes import NODES
from tests.support.processes import ROOT, run
from tests.support.single_node import model
from tests.support.wheels import NOT_BUILT, OLDEST_PYTHON, interpreters, of_this_version

PROJECT = (ROOT / "pyproject.toml").read_text()
OLDEST = {name: re.search(rf'"{name}>=([\d.]+)"', PROJECT)[1] for name in ("onnxruntime", "torch", "openvino")}
AGES = ("oldest", "newest")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


class Environment:
    """A new environment whose programs find no others."""

    def __init__(self, folder: Path, python: str) -> None:
        run(python, "-m", "venv", folder)
        self.bin = folder / "bin"
        told = {k: v for k, v in os.environ.items() if k.lower().endswith("_proxy") or k.startswith(("PIP_", "SSL_"))}
        self.variables = {**told, "PATH": str(self.bin), "HOME": os.environ["HOME"], "LANG": "C.UTF-8"}

    def run(self, program: str, *arguments: str | Path) -> str:
        return run(self.bin / program, *arguments, cwd=self.bin, env=self.variables)

    def versions(self, package: str) -> list[Version]:
        """Returns the versions in the index for this Python that polyop supports, oldest first."""
        said = self.run("python", "-m", "pip", "index", "versions", package)
        listed = map(Version, re.search(r"^Available versions: (.+)$", said, re.MULTILINE)[1].split(", "))
        return sorted(version for version in listed if version >= Version(OLDEST[package]))

    def newest(self, package: str) -> Version:
        """Returns the version that pip would install here: its configuration may limit them."""
        options = ("--dry-run", "--quiet", "--no-deps", "--only-binary", ":all:", "--report", "-")
        report = json.loads(self.run("python", "-m", "pip", "install", *options, package))
        return Version(report["install"][0]["metadata"]["version"])

    def install(self, *what: str | Path) -> None:
        self.run("python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--no-compile", *what)


@pytest.fixture
def environment(python: str, not_run: Callable[[str], None]) -> Iterator[Environment | None]:
    """An environment with only the wheel. It is removed at once, because it is large with PyTorch."""
    wheel = of_this_version(os.uname().machine)
    have = interpreters()
    if wheel is None:
        not_run(f"{os.uname().machine}: {NOT_BUILT}")
        yield None
    elif python == "oldest" and str(OLDEST_PYTHON) not in have:
        not_run(f"there is no python{OLDEST_PYTHON} here")
        yield None
    else:
        path = have[str(OLDEST_PYTHON)] if python == "oldest" else list(have.values())[-1]
        with tempfile.TemporaryDirectory(prefix="polyop-matrix-") as folder:
            fresh = Environment(Path(folder) / "venv", path)
            fresh.install(wheel)
            yield fresh


def choose(environment: Environment, package: str, age: str, not_run: Callable[[str], None]) -> Version:
    chosen = environment.versions(package)[0] if age == "oldest" else environment.newest(package)
    if age == "oldest" and chosen.release[:2] != Version(OLDEST[package]).release[:2]:
        python = environment.run("python", "--version").strip()
        not_run(f"{package} {OLDEST[package]}: the index has none for {python}; {chosen} is the oldest, which ran")
    return chosen


@pytest.fixture(scope="module")
def expected() -> list[list[np.ndarray] | None]:
    """Returns the results of every node with this checkout's library."""
    return [elsewhere.here(node) for node in NODES]


LIBRARY = "import polyop; print(polyop.get_onnxruntime_op_path(), end='')"


@pytest.mark.parametrize("age", AGES)
@pytest.mark.parametrize("python", AGES)
def test_every_node_runs_in_onnxruntime(environment: Environment | None, age: str, expected: list[list[np.ndarray]],
                                        tmp_path: Path, program: str, not_run: Callable[[str], None]):  # fmt: skip
    if environment is None:
        return
    assert polyop.__version__ in environment.run("polyop", "--version")
    assert environment.run("polyop", "ops") == run(program, "ops")
    version = choose(environment, "onnxruntime", age, not_run)
    # Releases before 1.19 are compiled for NumPy 1, but do not declare it.
    environment.install(f"onnxruntime=={version}", *(["numpy<2"] if version < Version("1.19") else []))
    library = environment.run("python", "-c", LIBRARY)
    assert library.startswith(str(environment.bin.parent))
    elsewhere.write(NODES, tmp_path)
    environment.run("python", elsewhere.CHILD, library, tmp_path)
    for number, node in enumerate(NODES):
        if version < Version("1.19") and (words := node.refusal_before_1_19()):
            assert words in (elsewhere.refusal(tmp_path, number) or "")
        else:
            elsewhere.check(tmp_path, number, expected[number])


TORCH = """
import torch, torch.nn.functional as F
import polyop

boxes = torch.tensor([[0.0, 0, 10, 10], [1, 0, 10, 10], [20, 20, 30, 30]])
assert polyop.nms(boxes, torch.tensor([0.5, 0.9, 0.1]), iou_threshold=0.5).tolist() == [1, 2]
try:
    torch.ops.polyop.nms(boxes[:, :3], torch.rand(3))
except RuntimeError as error:
    assert "nms" in str(error), error
else:
    raise AssertionError("boxes of three numbers were taken")

x, weight = torch.rand(2, 4, 9, 8, requires_grad=True), torch.rand(6, 4, 3, 3)
straight = torch.zeros(2, 18, 7, 6)
deformed = lambda x: polyop.deform_conv2d(x, straight, weight)
for function in (deformed, torch.compile(deformed, backend="aot_eager", fullgraph=True)):
    got, want = function(x), F.conv2d(x, weight)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(*(torch.autograd.grad(y.square().sum(), x)[0] for y in (got, want)))

image, grid = torch.rand(2, 8, 40, 50), torch.rand(2, 60, 70, 2) * 2 - 1
want = F.grid_sample(image, grid, align_corners=False)
with polyop.accelerate():
    torch.testing.assert_close(F.grid_sample(image, grid, align_corners=False), want)
print("ran", torch.__version__)
"""


@pytest.mark.parametrize("age", AGES)
@pytest.mark.parametrize("python", AGES)
def test_operators_gradients_and_compilation_in_pytorch(
    environment: Environment | None, age: str, not_run: Callable[[str], None]
):
    if environment is None:
        return
    version = choose(environment, "torch", age, not_run)
    environment.install(f"torch=={version}")
    assert environment.run("python", "-c", TORCH).startswith(f"ran {version.base_version}")


OPENVINO = """
import sys, numpy as np, openvino, polyop.openvino
core = polyop.openvino.core()
a = np.float32([1, 2])
print(core.compile_model(core.read_model(sys.argv[1]), "CPU")({"a": a, "b": a})[0].tolist(), openvino.__version__)
try:
    core.read_model(sys.argv[2])
except Exception as error:
    print("refused:", "my_add" in str(error))
"""


@pytest.mark.parametrize("age", AGES)
@pytest.mark.parametrize("python", AGES)
def test_openvino_loads_the_library(
    environment: Environment | None, age: str, tmp_path: Path, not_run: Callable[[str], None]
):
    if environment is None:
        return
    version = choose(environment, "openvino", age, not_run)
    environment.install("polyop[openvino]", f"openvino=={version}")
    a = np.float32([1, 2])
    for name, b in (("good", a), ("bad", np.float32([1, 2, 3]))):
        proto = model("custom::my_add", {"a": a, "b": b})
        (tmp_path / f"{name}.onnx").write_bytes(proto.SerializeToString())
    said = environment.run("python", "-c", OPENVINO, tmp_path / "good.onnx", tmp_path / "bad.onnx").splitlines()
    assert said[0].startswith(f"[3.0, 6.0] {version.release[0]}.{version.release[1]}")
    assert said[1:] == ["refused: True"]


FREE_THREADED = """
import sys, threading
import numpy as np, onnxruntime as ort
import polyop, polyop.numpy

def session(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])

shared, wrong = session(sys.argv[1]), []

def work(number):
    image, rois = np.full((1, 1, 4, 4), number, np.float32), np.float32([[0, 0, 0, 3, 3]])
    for repeat in range(50):
        if not (polyop.numpy.roi_align(image, rois, 1) == number).all():
            wrong.append(number)
        try:
            polyop.numpy.roi_align(image, rois + np.float32([-number, 0, 0, 0, 0]), 1)
            wrong.append(number)
        except ValueError as error:
            if f"expected a batch index in [0, 1), got -{number}" not in str(error):
                wrong.append(str(error))
        here = shared if repeat % 2 else session(sys.argv[1])
        if not (here.run(None, {"image": image, "rois": rois})[0] == number).all():
            wrong.append(number)
        try:
            here.run(None, {"image": image, "rois": rois + np.float32([number, 0, 0, 0, 0])})
            wrong.append(number)
        except Exception as error:
            if f"expected a batch index in [0, 1), got {number}" not in str(error):
                wrong.append(str(error))

threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(wrong, sys._is_gil_enabled(), sys.version_info[:2])
"""


@pytest.mark.parametrize("release", ["3.13", "3.14"])
def test_free_threaded_python(release: str, tmp_path: Path, not_run: Callable[[str], None]):
    """Threads that Python does not serialize create sessions and call an operator, and each gets its own error."""
    wheel = of_this_version(os.uname().machine)
    python = ROOT / ".deps" / "python-free-threaded" / release / "bin" / f"python{release}t"
    if wheel is None or not python.exists():
        not_run(NOT_BUILT if wheel is None else f"no {python.name}: run tools/setup_free_threaded.sh {release}")
        return
    environment = Environment(tmp_path / "venv", str(python))
    environment.install(wheel, "onnxruntime")
    given = {"image": np.ones((1, 1, 4, 4), np.float32), "rois": np.zeros((1, 5), np.float32)}
    proto = model("mmcv::MMCVRoiAlign", given, attributes={"output_height": 1, "output_width": 1})
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    said = environment.run("python", "-X", "gil=0", "-c", FREE_THREADED, tmp_path / "model.onnx")
    assert said.strip() == f"[] False {tuple(map(int, release.split('.')))}"
