# SPDX-License-Identifier: Apache-2.0
"""The portable wheels that `make wheels` writes to dist/: their contents and requirements, and this processor's wheel,
installed alone.
"""

from __future__ import annotations

import os
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from packaging.version import Version

import polyop
from tests.support.binaries import EXPORTS, GLIBC
from tests.support.older_onnxruntimes import OLD
from tests.support.processes import ROOT, run
from tests.support.single_node import model
from tests.support.wheels import NOT_BUILT, SESSION, WHEELS, of_this_version

pytestmark = pytest.mark.slow


def needed_exported_imported(binary: Path) -> tuple[set[str], list[str], set[str]]:
    """Returns libraries and names of symbols. readelf reads files of every processor."""
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "--dynamic", "--wide", binary))
    symbols = [line.split() for line in run("readelf", "--dyn-syms", "--wide", binary).splitlines()]
    exported = [
        s[7].split("@")[0] for s in symbols if len(s) > 7 and s[4] in ("GLOBAL", "WEAK") and s[6] not in ("UND", "ABS")
    ]
    imported = {s[7].split("@")[0] for s in symbols if len(s) > 7 and s[6] == "UND" and "@GLIBC" in s[7]}
    return {name for name in needed if not name.startswith((*GLIBC, "librt.so.1"))}, sorted(exported), imported


def newest_version(binary: Path, family: str) -> Version:
    """Returns the newest version of a family of symbols that the binary imports."""
    said = run("readelf", "--version-info", "--wide", binary)
    return max(map(Version, re.findall(rf"Name: {family}_([\d.]+)", said)))


@pytest.mark.parametrize("arch", WHEELS)
def test_runs_on_every_linux_of_its_processor(arch: str, tmp_path: Path, not_run: Callable[[str], None]):
    wheel = of_this_version(arch)
    if wheel is None:
        not_run(f"{arch}: {NOT_BUILT}")
        return
    tag = re.fullmatch(rf"polyop-[\d.]+-py3-none-manylinux_2_(\d+)_{arch}(\.manylinux\w+)?\.whl", wheel.name)
    assert tag
    assert int(tag[1]) <= 28
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    data = f"polyop-{polyop.__version__}"
    assert {file.name for file in (tmp_path / "polyop" / "lib").glob("*.so")} == {
        f"libpolyop_{n}.so" for n in (*EXPORTS, "jax", "openvino")
    }
    openvino = tmp_path / "polyop" / "lib" / "libpolyop_openvino.so"
    needed, exported, _ = needed_exported_imported(openvino)
    assert needed == {"libstdc++.so.6", "libgcc_s.so.1"}
    assert exported == ["create_extensions", "polyop_sdk_version"]
    assert newest_version(openvino, "GLIBCXX") <= Version("3.4.25")  # GCC 8's, as in manylinux_2_28
    for name, expected in EXPORTS.items():
        needed, exported, imported = needed_exported_imported(tmp_path / "polyop" / "lib" / f"libpolyop_{name}.so")
        assert exported == expected
        assert needed <= {"libtorch_cpu.so", "libpolyop_onnxruntime.so"}
        if name != "accelerator":  # glibc's, not zig's: cmake/portable/memory.c
            assert {"memcpy", "memmove", "memset"} <= imported
    needed, _, _ = needed_exported_imported(tmp_path / f"{data}.data" / "scripts" / "polyop")
    assert needed == set()
    notices = tmp_path / f"{data}.dist-info" / "licenses" / "THIRD_PARTY_LICENSES"
    assert notices.read_bytes() == (ROOT / "THIRD_PARTY_LICENSES").read_bytes()


class Environment:
    """A new environment that holds only the wheel; runtimes come from folders."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        run(sys.executable, "-m", "venv", folder)
        self.bin = folder / "bin"
        run(self.bin / "python", "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", wheel)
        self.mine = run(self.bin / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
        self.theirs = run(sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()

    def variables(self, *folders: Path) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
        return clean | {"PYTHONPATH": ":".join([self.mine, *map(str, folders), self.theirs])}

    def python(self, code: str, *folders: Path) -> str:
        return run(self.bin / "python", "-c", code, cwd=self.bin, env=self.variables(*folders))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment | None:
    wheel = of_this_version(os.uname().machine)
    return Environment(tmp_path_factory.mktemp("wheels") / "venv", wheel) if wheel else None


@pytest.mark.parametrize("folder", [None, *OLD], ids=lambda folder: folder.name if folder else "newest")
def test_runs_in_every_onnxruntime(
    environment: Environment | None, folder: Path | None, not_run: Callable[[str], None]
):
    if environment is None:
        not_run(f"{os.uname().machine}: {NOT_BUILT}")
        return
    # The model is created here, because an older runtime's NumPy may not be the one that onnx needs.
    a = np.float32([1, 2, 3])
    proto = model("custom::my_add", {"a": a, "b": a})
    code = f"""
import polyop, numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.register_custom_ops_library(polyop.get_library_path())
session = ort.InferenceSession({proto.SerializeToString()!r}, options, providers=["CPUExecutionProvider"])
a = np.float32([1, 2, 3])
print(session.run(None, {{"a": a, "b": a}})[0].tolist(), polyop.__file__, ort.__version__)
"""
    output = environment.python(code, *([folder] if folder else []))
    assert output.startswith("[3.0, 6.0, 9.0]")
    assert environment.mine in output
    assert folder is None or output.strip().endswith(folder.name.removeprefix("onnxruntime-"))


def test_runs_the_readmes_program(environment: Environment | None, not_run: Callable[[str], None]):
    if environment is None:
        not_run(f"{os.uname().machine}: {NOT_BUILT}")
        return
    assert environment.python(SESSION).startswith("[3.0, 6.0, 9.0]")


TORCH = """
import polyop, torch
boxes = torch.tensor([[0.0, 0, 10, 10], [1, 0, 10, 10], [20, 20, 30, 30]])
print(polyop.nms(boxes, torch.tensor([0.5, 0.9, 0.1]), iou_threshold=0.5).tolist(), polyop.__file__)
for wrong in (boxes[:, :3], boxes[:2]):
    try:
        torch.ops.polyop.nms(wrong, torch.rand(3))
    except RuntimeError as error:
        print("refused:", str(error).splitlines()[0])
"""


def test_errors_reach_pytorch_with_another_cxx_runtime(environment: Environment | None, not_run: Callable[[str], None]):
    if environment is None:
        not_run(f"{os.uname().machine}: {NOT_BUILT}")
        return
    first, *refused = environment.python(TORCH).splitlines()
    assert first.startswith("[1, 2]")
    assert environment.mine in first
    assert len(refused) == 2
    assert all(re.match(r"refused: .*nms.*", line) for line in refused)


OPENVINO = """
import numpy as np, openvino, polyop.openvino
core = polyop.openvino.core()
a = np.float32([1, 2])
print(core.compile_model(core.read_model({add!r}), "CPU")({{"a": a, "b": a}})[0].tolist(), openvino.__version__.split("-")[0])
pool = core.compile_model(core.read_model({pool!r}), "CPU")
print(pool([np.ones((1, 1, 4, 4), np.float32), np.float32([[0, 0, 0, 3, 3]])])[0].ravel().tolist())
try:
    pool([np.ones((1, 1, 4, 4), np.float32), np.float32([[7, 0, 0, 3, 3]])])
except RuntimeError as error:
    print("refused:", [line for line in str(error).splitlines() if "batch index" in line][0])
try:
    core.read_model({wrong!r})
except Exception as error:
    print("refused:", type(error).__name__)
"""


@pytest.mark.parametrize("folder", [None, ROOT / ".deps" / "openvino-2026.0.0"], ids=["newest", "2026.0"])
def test_runs_in_openvino(environment: Environment | None, folder: Path | None, not_run: Callable[[str], None]):
    """Strings, vectors and exceptions pass between the library, compiled by clang, and OpenVINO, compiled by GCC."""
    if environment is None:
        not_run(f"{os.uname().machine}: {NOT_BUILT}")
        return
    a, image, rois = np.float32([1, 2]), np.ones((1, 1, 4, 4), np.float32), np.zeros((1, 5), np.float32)
    size = {"output_height": 1, "output_width": 1}
    models = {
        "add": model("custom::my_add", {"a": a, "b": a}),
        "pool": model("mmcv::MMCVRoiAlign", {"image": image, "rois": rois}, attributes=size),
        "wrong": model("mmcv::MMCVRoiAlign", {"image": image, "rois": rois}, attributes={**size, "output_height": -1}),
    }
    code = OPENVINO.format(**{name: each.SerializeToString() for name, each in models.items()})
    added, pooled, *refused = environment.python(code, *([folder] if folder else [])).splitlines()
    assert added.startswith("[3.0, 6.0] 2026.0" if folder else "[3.0, 6.0] 2026.")
    assert pooled == "[1.0]"
    assert len(refused) == 2
    assert "expected a batch index in [0, 1), got 7" in refused[0]


def test_program_runs_a_model(environment: Environment | None, tmp_path: Path, not_run: Callable[[str], None]):
    if environment is None:
        not_run(f"{os.uname().machine}: {NOT_BUILT}")
        return
    program = environment.bin / "polyop"
    assert polyop.__version__ in run(program, "--version")
    (runtime,) = (Path(environment.theirs) / "onnxruntime" / "capi").glob("libonnxruntime.so.*")
    srcnn = ROOT / "models" / "srcnn" / "srcnn3.onnx"
    said = run(program, "run", srcnn, "--onnxruntime", runtime, "-i", "input=random", "--shape", "input=1x3x20x30",
               "--set", "factor=1,1,2,2", cwd=tmp_path)  # fmt: skip
    assert "f32[1, 3, 40, 60]" in said
