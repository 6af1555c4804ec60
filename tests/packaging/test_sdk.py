# SPDX-License-Identifier: Apache-2.0
"""The SDK as `cmake --install` installs it: projects of operators, C++ programs, and rejected libraries."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from tests.support.processes import ROOT
from tests.support.single_node import model

TOOLS = Path(sys.executable).parent


def run(*command: object, **given: object) -> subprocess.CompletedProcess:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **given)


def succeed(*command: object, **given: object) -> str:
    done = run(*command, **given)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(building_folder: Path) -> Path:
    """The folder of `cmake --install build/release`."""
    succeed(TOOLS / "cmake", "--install", ROOT / "build" / "release", "--prefix", building_folder / "prefix")
    return building_folder / "prefix"


@pytest.fixture(scope="module")
def sdk(prefix: Path) -> Path:
    (folder,) = (Path(line) for line in succeed(prefix / "bin" / "polyop", "cmake-dir").splitlines())
    assert folder == prefix / "lib" / "cmake" / "polyop"
    return folder


@pytest.fixture(scope="module")
def project(prefix: Path, sdk: Path, building_folder: Path) -> Path:
    """A project whose library for ONNX Runtime is built only for the lowest instruction set, to save time."""
    succeed(prefix / "bin" / "polyop", "new", "my_ops", "--project", cwd=building_folder)
    folder = building_folder / "my_ops"
    configure(folder, sdk, "-DPOLYOP_HWY_TARGETS=none")
    succeed(TOOLS / "cmake", "--build", folder / "build", "--target", "my_ops_onnxruntime")
    return folder


def configure(folder: Path, sdk: Path, *options: str) -> None:
    succeed(
        TOOLS / "cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-Dpolyop_DIR={sdk}",
        f"-DPython_EXECUTABLE={sys.executable}", *options,
    )  # fmt: skip


@pytest.fixture
def found(project: Path) -> dict[str, str]:
    """Returns the environment in which polyop finds the project's libraries."""
    return {**os.environ, "POLYOP_OPERATORS": str(project / "build" / "lib")}


@pytest.fixture
def net(tmp_path: Path) -> Path:
    x = np.zeros((2, 3), np.float32)
    proto = model("my_ops::Times", {"x": x}, ["y"], {"scale": 3.0}, {"x": (2, "N")})
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    return tmp_path / "net.onnx"


def test_library_contains_only_the_authors_operators(project: Path, net: Path) -> None:
    """It loads together with polyop's library in one session."""
    import polyop

    library = project / "build" / "lib" / "libmy_ops_onnxruntime.so"
    options = ort.SessionOptions()
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    options.register_custom_ops_library(str(library))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (y,) = ort.InferenceSession(net, options).run(None, {"x": x})
    np.testing.assert_array_equal(y, 3 * x)
    assert b"roi_align" not in library.read_bytes()


def test_program_finds_the_library(prefix: Path, net: Path, found: dict[str, str]) -> None:
    program = prefix / "bin" / "polyop"
    assert "my_ops::times my_ops::Times f32, f16, bf16" in " ".join(
        succeed(program, "ops", "--long", env=found).split()
    )
    assert "my_ops::times: Multiplies by a number." in succeed(program, "ops", "times", env=found)
    assert "my_ops (ONNX Runtime CPU)" in succeed(program, "inspect", net, env=found)
    assert "equal: all of 1 tensor(s)" in succeed(program, "verify", net, "--shape", "x=2x3", env=found)
    assert "equal: all of 1 tensor(s)" in succeed(
        program, "verify", net, "--shape", "x=2x3", "--reference", "isa=sse4", env=found
    )
    succeed(program, "bench", net, "--shape", "x=2x3", "--seconds", "0.01", env=found)
    without = run(program, "inspect", net)
    assert without.returncode == 4
    assert "nobody" in without.stdout


PYTHON = """
import sys
import numpy as np
import polyop
from polyop._onnx.catalogue import find_node
x = np.arange(6, dtype=np.float32).reshape(2, 3)
print(polyop.session(sys.argv[1]).run(None, {"x": x})[0].tolist())
print(find_node("my_ops", "Times", {})[0]["package"])
"""


def test_python_finds_the_library(net: Path, found: dict[str, str]) -> None:
    assert succeed(sys.executable, "-c", PYTHON, net, env=found) == "[[0.0, 3.0, 6.0], [9.0, 12.0, 15.0]]\nmy_ops\n"


def test_an_entry_point_announces_an_installed_package(prefix: Path, project: Path, net: Path) -> None:
    """The program reads the environment that it is installed in; Python uses importlib."""
    site = prefix / "lib" / "python3.11" / "site-packages"
    (site / "my_ops-0.1.0.dist-info").mkdir(parents=True)
    (site / "my_ops-0.1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: my_ops\nVersion: 0.1.0\n")
    points = "[console_scripts]\nother = other:main\n\n[polyop.operators]\nmy_ops = my_ops\n"
    (site / "my_ops-0.1.0.dist-info" / "entry_points.txt").write_text(points)
    (site / "my_ops").mkdir()
    (site / "my_ops" / "lib").symlink_to(project / "build" / "lib")
    try:
        assert "my_ops (ONNX Runtime CPU)" in succeed(prefix / "bin" / "polyop", "inspect", net)
        said = succeed(sys.executable, "-c", PYTHON, net, env={**os.environ, "PYTHONPATH": str(site)})
        assert said.endswith("my_ops\n")
    finally:
        shutil.rmtree(prefix / "lib" / "python3.11")


def library_of(name: str, source: str, folder: Path) -> dict[str, str]:
    """Returns an environment that names a folder with a library of this C code."""
    folder.mkdir()
    (folder / "library.c").write_text(source)
    succeed("gcc", "-shared", "-fPIC", folder / "library.c", "-o", folder / f"lib{name}_onnxruntime.so")
    return {**os.environ, "POLYOP_OPERATORS": str(folder)}


@pytest.mark.parametrize(
    ("source", "version"), [("int polyop_sdk_version(void) { return 99; }", "99"), ("int nothing;", "none")]
)
def test_rejects_a_library_for_another_version(program: str, tmp_path: Path, source: str, version: str) -> None:
    environment = library_of("strange", source, tmp_path / "lib")
    said = f"the operators of 'strange' were built for version {version} of polyop's SDK, and"
    done = run(program, "ops", "my_add", env=environment)
    assert done.returncode == 0
    assert said in done.stderr
    assert "has version 2: build them again with this polyop, by `pip install .`" in done.stderr
    load = "from polyop.packages import load, packages; assert packages() == []; load('strange')"
    done = run(sys.executable, "-W", "ignore", "-c", load, env=environment)
    assert f"ImportError: {said} polyop 0." in done.stderr
    assert "has version 2: build them again with this polyop, by `pip install .`" in done.stderr


def test_ignores_files_that_are_no_library(program: str, tmp_path: Path) -> None:
    (tmp_path / "libodd_onnxruntime.so").write_text("no library")
    for folder, said in [(tmp_path, "libodd_onnxruntime.so"), (tmp_path / "nowhere", "no library of operators")]:
        environment = {**os.environ, "POLYOP_OPERATORS": str(folder)}
        done = run(program, "ops", "my_add", env=environment)
        assert done.returncode == 0
        assert said in done.stderr
        done = run(sys.executable, "-c", "from polyop.packages import packages; assert not packages()", env=environment)
        assert done.returncode == 0
        assert said in done.stderr


def test_a_domain_belongs_to_one_library(prefix: Path, sdk: Path, project: Path, building_folder: Path) -> None:
    """ONNX Runtime accepts a domain once: the second library reports that and is ignored."""
    folder = building_folder / "clash"
    shutil.copytree(project, folder, ignore=shutil.ignore_patterns("build"))
    header = folder / "ops" / "times" / "times.h"
    header.write_text(header.read_text().replace("my_ops::Times", "custom::Times"))
    lists = folder / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("my_ops", "clash"))
    configure(folder, sdk, "-DPOLYOP_HWY_TARGETS=none")
    succeed(TOOLS / "cmake", "--build", folder / "build", "--target", "clash_onnxruntime")
    library = folder / "build" / "lib" / "libclash_onnxruntime.so"
    import polyop

    options = ort.SessionOptions()
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    with pytest.raises(Exception, match=r"domain 'custom' is already registered by library 'polyop'.*clash::MyOp"):
        options.register_custom_ops_library(str(library))


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ("polyop_add_library(my_ops)", "expected polyop_add_library(NAME OPERATORS DIRECTORY"),
        (
            "polyop_add_library(MyOps OPERATORS ops)",
            "expected a name in lower_case_words other than polyop, got 'MyOps'",
        ),
        (
            "polyop_add_library(polyop OPERATORS ops)",
            "expected a name in lower_case_words other than polyop, got 'polyop'",
        ),
        ("polyop_add_library(my_ops OPERATORS nowhere)", "expected a directory called ops, got"),
        ("polyop_add_library(my_ops OPERATORS ops)", "expected operators (a folder NAME with NAME.h) in"),
    ],
)
def test_a_wrong_call_is_explained(sdk: Path, tmp_path: Path, lists: str, said: str) -> None:
    (tmp_path / "ops").mkdir()
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(wrong LANGUAGES C CXX)\n"
        f"set(POLYOP_BUILD_TORCH OFF)\nset(POLYOP_BUILD_OPENVINO OFF)\nfind_package(polyop CONFIG REQUIRED)\n{lists}\n"
    )
    done = run(TOOLS / "cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-Dpolyop_DIR={sdk}")
    assert done.returncode != 0
    assert said in " ".join(done.stderr.split())


def test_a_program_that_links_onnxruntime(sdk: Path, building_folder: Path, tmp_path: Path) -> None:
    """Builds examples/cpp with ONNX Runtime laid out like its releases."""
    runtime = tmp_path / "onnxruntime"
    (runtime / "lib").mkdir(parents=True)
    (runtime / "include").symlink_to(ROOT / ".deps" / "onnxruntime" / "include")
    (library,) = (Path(ort.__file__).parent / "capi").glob("libonnxruntime.so*")
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (runtime / "lib" / name).symlink_to(library)
    build = building_folder / "example"
    succeed(
        TOOLS / "cmake", "-S", ROOT / "examples" / "cpp", "-B", build, "-G", "Ninja", f"-Dpolyop_DIR={sdk}",
        f"-DONNXRUNTIME_ROOT={runtime}",
    )  # fmt: skip
    succeed(TOOLS / "cmake", "--build", build)
    values = np.zeros(3, np.float32)
    proto = model("custom::my_add", {"a": values, "b": values}, ["c"])
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    assert succeed(build / "run_model", tmp_path / "net.onnx") == "c: 0 0.75 1.5\n"  # 2 a + b
    (tmp_path / "net.onnx").write_bytes(b"no model")
    assert "run_model: " in run(build / "run_model", tmp_path / "net.onnx").stderr


def test_a_c_program_without_a_runtime(sdk: Path, building_folder: Path) -> None:
    """Builds examples/c."""
    build = building_folder / "example_c"
    succeed(TOOLS / "cmake", "-S", ROOT / "examples" / "c", "-B", build, "-G", "Ninja", f"-Dpolyop_DIR={sdk}")
    succeed(TOOLS / "cmake", "--build", build)
    assert succeed(build / "nms") == "keep box 1\nkeep box 2\n"
    assert succeed(build / "nms", "0.9") == "keep box 1\nkeep box 0\nkeep box 2\n"
    refused = run(build / "nms", "nan")
    assert refused.returncode == 1
    assert "polyop::nms: attribute 'iou_threshold': expected" in refused.stderr


@pytest.mark.slow
def test_a_program_that_contains_the_kernels(building_folder: Path, tmp_path: Path) -> None:
    """Builds examples/executorch and runs a file: the results are PyTorch's."""
    import executorch
    import torch

    import polyop.executorch as pe

    class Head(torch.nn.Module):
        def forward(self, features: torch.Tensor, rois: torch.Tensor, scores: torch.Tensor) -> tuple[torch.Tensor, ...]:
            keep = torch.ops.polyop.nms(rois[:, 1:], scores, iou_threshold=0.5)
            rois = rois * torch.tensor([0.0, 1, 1, 1, 1])
            return torch.ops.polyop.roi_align(features, rois[keep], output_height=2, output_width=2), keep

    def numbers(*shape: int) -> torch.Tensor:
        return torch.arange(torch.Size(shape).numel()).reshape(shape) * 0.25

    inputs = numbers(1, 2, 8, 8), numbers(6, 5), numbers(6)
    pe.export(Head(), inputs, tmp_path / "head.pte")
    build, package = building_folder / "run_pte", Path(executorch.__path__[0])
    succeed(
        TOOLS / "cmake", "-S", ROOT / "examples" / "executorch", "-B", build, "-G", "Ninja",
        f"-Dexecutorch_DIR={package / 'lib' / 'cmake' / 'executorch'}", "-DPOLYOP_HWY_TARGETS=none",
    )  # fmt: skip
    succeed(TOOLS / "cmake", "--build", build)
    pooled, keep = Head()(*inputs)
    first = " ".join(f"{value:g}" for value in pooled.flatten()[:6].tolist())
    assert succeed(build / "run_pte", tmp_path / "head.pte") == (
        f"[ 6 2 2 2 ]: {first}\n[ 6 ]: {' '.join(map(str, keep.tolist()))}\n"
    )
    refused = run(build / "run_pte", tmp_path / "missing.pte")
    assert refused.returncode == 1
    assert "missing.pte has no method 'forward'" in refused.stderr


def test_a_rust_program_without_a_runtime(library: str, building_folder: Path, not_run: Callable[[str], None]) -> None:
    """Compiles examples/rust, by the command in its first lines."""
    compiler = shutil.which("rustc")
    if compiler is None:
        not_run("rustc was not found")
        return
    source, folder, program = (
        ROOT / "examples" / "rust" / "nms.rs",
        Path(library).resolve().parent,
        building_folder / "nms",
    )
    linked = ("-L", folder, "-l", "polyop_onnxruntime", "-C", f"link-arg=-Wl,-rpath,{folder}")
    succeed(compiler, "--edition", "2021", "-O", source, "-o", program, *linked)
    assert succeed(program) == "keep box 1\nkeep box 2\n"
    refused = run(program, "7")
    assert refused.returncode == 1
    assert "polyop::nms: attribute 'iou_threshold': expected a number in [0, 1], got 7" in refused.stderr


def test_does_not_overwrite_a_project(program: str, tmp_path: Path) -> None:
    (tmp_path / "my_ops").mkdir()
    for arguments, said in [
        (["my_ops", "--project"], "my_ops exists; nothing was written"),
        (["MyOps", "--project"], "the name of a project: expected lower_case_words, got 'MyOps'"),
        (["polyop", "--project"], "the project 'polyop' exists already"),
        (
            ["fine", "--project", "--operator", "Times"],
            "the name of an operator: expected lower_case_words, got 'Times'",
        ),
    ]:
        done = run(program, "new", *arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["my_ops"]


def test_a_second_operator_has_the_projects_domain(program: str, tmp_path: Path) -> None:
    succeed(program, "new", "my_ops", "--project", cwd=tmp_path)
    said = succeed(program, "new", "half", cwd=tmp_path / "my_ops")
    assert "as my_ops::Half" in said
    assert "polyop test" in said
    assert '"my_ops::Half"' in (tmp_path / "my_ops" / "ops" / "half" / "half.h").read_text()


@pytest.mark.slow
def test_an_installed_package_in_every_runtime(author: dict[str, str], tmp_path: Path) -> None:
    """Runs its own tests: PyTorch, gradients, both exporters to ONNX Runtime, and OpenVINO."""
    run_here = {"cwd": tmp_path, "env": author}
    succeed("polyop", "new", "my_ops", "--project", "--gradient", **run_here)
    succeed("pip", "install", "--quiet", "./my_ops", **run_here)
    succeed("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "my_ops/tests", **run_here)
    said = succeed("python", "-c", OPENVINO, **run_here)
    assert said == "[0.0, 2.0, 4.0]\n"


OPENVINO = """
import numpy as np
import torch
import my_ops
import polyop
import polyop.openvino
class Net(torch.nn.Module):
    def forward(self, x):
        return torch.ops.my_ops.times(x)
polyop.export(Net(), torch.zeros(3), "net.onnx", verbose=False, input_names=["x"])
model = polyop.openvino.core().compile_model("net.onnx", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
print(model(np.arange(3, dtype=np.float32))[0].tolist())
"""
