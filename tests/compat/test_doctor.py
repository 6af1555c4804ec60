# SPDX-License-Identifier: Apache-2.0
"""`polyop doctor`: causes of failed imports, crashes, versions, and the command that helps."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from polyop.compat import REPLACEMENTS
from polyop.compat._causes import cause
from polyop.compat._packages import modules_called
from polyop.compat._probe import RUNTIMES
from tests.support.processes import environment


def doctor(folder: Path, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "polyop", "doctor", *words],
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout


def package(folder: Path, name: str, text: str, version: str = "", *requirements: str) -> Path:
    """Writes a package, and the metadata of its distribution if it has a version."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(text)
    if version:
        about = folder / f"{name}-{version}.dist-info"
        about.mkdir()
        needs = "".join(f"Requires-Dist: {requirement}\n" for requirement in requirements)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        (about / "top_level.txt").write_text(name)
    return folder / name


def extension(file: Path, symbol: str = "", library: str = "") -> None:
    """Compiles an extension that calls an undefined function, or links to a library that does not exist."""
    source = file.with_name(f"{file.name.partition('.')[0]}.c")
    source.write_text(f'void {symbol or "puts"}(); void *PyInit__ext() {{ {symbol or "puts"}(""); return 0; }}\n')
    command = ["cc", "-shared", "-fPIC", "-w", "-Wl,-z,now", "-o", file, source]
    if library:
        (file.parent / "empty.c").write_text("int polyop_unused;\n")
        name = file.parent / library
        subprocess.run(["cc", "-shared", f"-Wl,-soname,{library}", "-o", name, file.parent / "empty.c"], check=True)
        command += ["-Wl,--no-as-needed", name]
    subprocess.run(command, check=True)
    if library:
        name.unlink()


def test_reasons_of_real_extensions(tmp_path: Path) -> None:
    """The dynamic linker's and Python's own messages."""
    suffix = ".so"
    symbol = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
    extension(package(tmp_path, "pointnet2_ops", "", "3.0.0+pt21cu118") / f"_ext{suffix}", symbol)
    (package(tmp_path, "detectron2", "") / "_C.cpython-38-x86_64-linux-gnu.so").write_text("")
    extension(package(tmp_path, "groundingdino", "") / f"_C{suffix}", library="libcudart.so.12")
    (package(tmp_path, "MultiScaleDeformableAttention", "import _broken") / "empty").write_text("")
    (tmp_path / f"_broken{suffix}").write_text("not a library" * 99)
    names = ["pointnet2_ops._ext", "detectron2._C", "groundingdino._C", "MultiScaleDeformableAttention"]
    report = json.loads(doctor(tmp_path, *names, "--json"))
    assert report["runtimes"] == {}
    found = report["packages"]
    assert list(found) == [name for name in REPLACEMENTS if name in names]
    here = f"this is {torch.__version__}"
    assert found[names[0]] == {
        "state": "fails",
        "version": "3.0.0+pt21cu118",
        "cause": f"was built for PyTorch 2.1, and {here}",
        "error": f"{tmp_path}/pointnet2_ops/_ext.so: undefined symbol: {symbol}",
        "fix": "import polyop.compat; polyop.compat.install('pointnet2_ops._ext')",
    }
    assert found[names[1]]["cause"] == f"was built for Python 3.8, and this is {platform.python_version()}"
    assert found[names[2]]["cause"].startswith(f"was built for CUDA 12, and PyTorch {torch.__version__} here has ")
    assert found[names[3]]["cause"] == f"was built for another processor than {platform.machine()}"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "/lib/libm.so.6: version `GLIBC_9.99' not found (required by x.so)",
            "was built for glibc 9.99 or newer, and ",
        ),
        ("version `GLIBCXX_3.4.99' not found", "was built with a newer C++ library: it needs GLIBCXX_3.4.99"),
        ("x.so: undefined symbol: _PyUnicode_Ready", "was built for another Python than "),
        ("x.so: undefined symbol: cblas_sgemm", "a library that it links to lacks cblas_sgemm"),
        (
            "x.so: undefined symbol: _ZN2at4_ops5emptyE",
            f"was built for PyTorch 1.13.1, and this is {torch.__version__}",
        ),
        ("operator torchvision::nms does not exist", f"was built for PyTorch 1.13.1, and this is {torch.__version__}"),
        ("libtorch_cuda.so: cannot open shared object file", "was built for CUDA, and PyTorch "),
        ("libnvrtc.so.11.2: cannot open shared object file", "was built for CUDA 11, and PyTorch "),
        ("No module named 'a_package'", "is not installed"),
        ("No module named 'pccm'", "needs the package 'pccm', which is not installed"),
        ("something else", None),
    ],
)
def test_reasons(message: str, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "a_package", "", "1.0", "numpy", "torch (==1.13.1)")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = cause("a_package", message)
    assert found is None if expected is None else found is not None and found.startswith(expected)


def test_a_crash_does_not_end_the_report(tmp_path: Path) -> None:
    package(tmp_path, "torch_scatter", "import os, signal; print('noise'); os.kill(os.getpid(), signal.SIGSEGV)")
    package(tmp_path, "torch_cluster", "print('noise')")
    said = doctor(tmp_path, "torch_scatter", "torch_cluster")
    assert "noise" not in said
    rows = [line.split(maxsplit=2) for line in said.splitlines()]
    assert ["torch_scatter", "-", "does not load; polyop replaces it"] in rows
    assert ["torch_cluster", "-", "loads"] in rows
    assert "torch_scatter: the import ends the process (SIGSEGV)" in said
    assert "    to fix it: import polyop.compat; polyop.compat.install('torch_scatter')" in said
    assert "python -m polyop.compat SCRIPT" in said


def test_runtimes(tmp_path: Path) -> None:
    said = doctor(tmp_path, "onnxruntime", "torch", "numpy")
    assert f"PyTorch     {torch.__version__}" in said
    assert "What to do" not in said
    rows = [line.split() for line in said.splitlines()]
    assert ["PyTorch", torch.__version__, "loads"] in rows
    package(tmp_path, "onnxruntime", "", "1.16.3")
    report = json.loads(doctor(tmp_path, "onnxruntime", "--json", code=5))
    assert report["runtimes"]["onnxruntime"] == {
        "state": "old",
        "version": "1.16.3",
        "error": "expected 1.17 or newer, got 1.16.3",
        "cause": None,
        "fix": "pip install --upgrade 'onnxruntime>=1.17'",
    }
    said = doctor(tmp_path, "onnxruntime", code=5)
    assert "    to fix it: pip install --upgrade 'onnxruntime>=1.17'" in said


def test_a_checkout_without_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYOP_LIBRARY_DIR", str(tmp_path))
    said = doctor(tmp_path, "torch", "onnxruntime", code=5)
    assert "no library for ONNX Runtime, PyTorch: this is polyop" in said
    assert "to fix it: `make build` in a checkout" in said


def test_names(tmp_path: Path) -> None:
    def error(name: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "polyop", "doctor", name],
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        return done.stderr

    assert "does not replace 'torch_scater'\n  hint: did you mean 'torch_scatter'?" in error("torch_scater")
    said = error("torch_spline_conv")
    assert "does not replace 'torch_spline_conv'" in said
    assert "did you mean" not in said
    assert len(said) < 200
    assert not set(RUNTIMES) & set(REPLACEMENTS)


@pytest.mark.parametrize(
    ("name", "modules"),
    [
        ("mmcv", ["mmcv._ext"]),
        ("mmcv-full", ["mmcv._ext"]),
        ("onedl-mmcv", ["mmcv._ext"]),
        ("mmcv._ext", ["mmcv._ext"]),
        ("torchvision", ["torchvision._C"]),
        ("spconv-cu118", ["spconv"]),
        ("torch-scatter==2.1.2", ["torch_scatter"]),
        ("detectron2", ["detectron2._C"]),
        ("groundingdino", ["groundingdino._C"]),
        ("DCNv4", ["DCNv4"]),
        ("torch", []),
        ("", []),
    ],
)
def test_a_package_or_distribution_means_its_modules(name: str, modules: list[str]) -> None:
    assert modules_called(name) == modules
    assert len(modules_called("pcdet")) == 7


def test_a_missing_package_that_the_user_named(tmp_path: Path) -> None:
    said = doctor(tmp_path, "mmcv")
    assert "mmcv._ext: its package is not installed\n    to fix it: pip install mmcv-lite mmengine" in said
