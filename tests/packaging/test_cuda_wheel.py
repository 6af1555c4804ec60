# SPDX-License-Identifier: Apache-2.0
"""polyop-cuda13 and polyop-cuda12, the wheels of libraries with CUDA kernels: finding them, and building one."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import polyop
from tests.support.binaries import EXPORTS, GLIBC, exports, linked_libraries
from tests.support.processes import ROOT, run
from tests.support.single_node import model


@pytest.fixture
def install(tmp_path: Path) -> Callable[..., Path]:
    """Returns a function that installs a package of empty libraries and returns their folder."""

    def lay(name: str, version: str = polyop.__version__, libraries: tuple[str, ...] = ("onnxruntime",)) -> Path:
        module = name.replace("-", "_")
        data = tmp_path / f"{module}-{version}.dist-info"
        data.mkdir()
        (data / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        folder = tmp_path / module / "lib"
        folder.mkdir(parents=True)
        for library in libraries:
            (folder / f"libpolyop_{library}.so").touch()
        return folder

    return lay


def found(folder: Path, function: str = "polyop.get_onnxruntime_op_path", **variables: str) -> tuple[Path, str]:
    """Returns the path that a new Python with these packages prints, and its warnings."""
    module = function.rsplit(".", 1)[0]
    code = f"import warnings; warnings.showwarning = lambda said, *_: print(said); import {module}; print({function}())"
    variables = {k: v for k, v in os.environ.items() if k != "POLYOP_LIBRARY_DIR"} | variables
    *said, path = run(sys.executable, "-c", code, env=variables | {"PYTHONPATH": str(folder)}).splitlines()
    return Path(path), "\n".join(said)


def test_uses_the_libraries_with_cuda(install: Callable[..., Path], tmp_path: Path):
    folder = install("polyop-cuda13", libraries=("onnxruntime", "tensorrt"))
    assert found(tmp_path) == (folder / "libpolyop_onnxruntime.so", "")
    assert found(tmp_path, "polyop.tensorrt.get_tensorrt_op_path") == (folder / "libpolyop_tensorrt.so", "")


def test_uses_its_own_library_if_the_package_lacks_it(install: Callable[..., Path], tmp_path: Path):
    install("polyop-cuda13")
    assert found(tmp_path, "polyop.get_accelerator_path")[0] == Path(polyop.get_accelerator_path())


def test_prefers_the_newer_cuda(install: Callable[..., Path], tmp_path: Path):
    install("polyop-cuda12")
    folder = install("polyop-cuda13")
    assert found(tmp_path)[0].parent == folder


def test_ignores_another_version_with_a_warning(install: Callable[..., Path], tmp_path: Path):
    install("polyop-cuda12", version="0.0.9")
    path, said = found(tmp_path)
    assert path == Path(polyop.get_onnxruntime_op_path())
    assert said == (
        f"polyop-cuda12 is ignored: expected version {polyop.__version__}, got 0.0.9; "
        "install the wheel that `make cuda-wheel` of this version builds"
    )


def test_prefers_polyop_library_dir(install: Callable[..., Path], tmp_path: Path):
    install("polyop-cuda13")
    own = Path(polyop.get_onnxruntime_op_path())
    assert found(tmp_path, POLYOP_LIBRARY_DIR=str(own.parent))[0] == own


RUN = """
import numpy as np, onnxruntime as ort, polyop
options = ort.SessionOptions()
options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
session = ort.InferenceSession({model!r}, options, providers=["CPUExecutionProvider"])
print(session.run(None, {{"a": np.float32([1, 2]), "b": np.float32([3, 4])}})[0].tolist(), polyop.get_onnxruntime_op_path())
import torch
import polyop.functional
print(torch.ops.polyop.my_add(torch.ones(2), torch.ones(2)).tolist())
print(*sorted({{line.split()[-1] for line in open("/proc/self/maps") if "libpolyop_torch" in line}}))
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_wheel_of_two_operators_runs_without_a_gpu(tmp_path: Path, not_run: Callable[[str], None]):
    """The driver is loaded when a kernel is first launched: the libraries also work without a GPU."""
    nvcc = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin" / "nvcc"
    if not (shutil.which("nvcc") or nvcc.is_file()):
        not_run("a wheel of CUDA libraries: there is no nvcc here")
        return
    run(
        ROOT / "tools" / "cuda_wheel.sh",
        tmp_path,
        env=os.environ | {"POLYOP_OPS": "my_add;nms", "CUDAARCHS": "75-real"},
    )
    (wheel,) = tmp_path.glob("polyop_cuda1?-*-py3-none-manylinux*.whl")
    assert wheel.name.split("-")[1] == polyop.__version__
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (folder,) = site.glob("polyop_cuda1?/lib")
    assert {path.name for path in folder.iterdir()} == {f"libpolyop_{name}.so" for name in (*EXPORTS, "tensorrt")}
    for name, expected in EXPORTS.items():
        library = str(folder / f"libpolyop_{name}.so")
        assert exports(library) == expected
        needed = {n for n in linked_libraries(library) if not n.startswith((*GLIBC, "librt.so.1"))}
        assert needed <= {"libtorch_cpu.so", "libpolyop_onnxruntime.so"}
    (notices,) = site.glob("*.dist-info/licenses/THIRD_PARTY_LICENSES")
    assert "NVIDIA CUDA Runtime" in notices.read_text()

    a = np.float32([1, 2])
    proto = model("custom::my_add", {"a": a, "b": a}).SerializeToString()
    code = RUN.format(model=proto)
    in_onnxruntime, in_torch, loaded = run(
        sys.executable, "-c", code, env=os.environ | {"PYTHONPATH": str(site)}
    ).splitlines()
    assert in_onnxruntime == f"[5.0, 8.0] {folder}/libpolyop_onnxruntime.so"
    assert in_torch == "[3.0, 3.0]"
    assert loaded == f"{folder}/libpolyop_torch.so"
