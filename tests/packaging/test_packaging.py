# SPDX-License-Identifier: Apache-2.0
"""The shipped files: the library's symbols and links, the Python package, the wheel."""

from __future__ import annotations

import os
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

import polyop
from polyop.tensorrt import get_tensorrt_op_path
from tests.support.binaries import EXPORTS, GLIBC, exports, linked_libraries
from tests.support.processes import ROOT, run
from tests.support.wheels import SESSION


def test_library_exports(library):
    assert exports(library) == EXPORTS["onnxruntime"]


def test_accelerator_links_the_library(library):
    accelerator = polyop.get_accelerator_path()
    assert exports(accelerator) == EXPORTS["accelerator"]
    assert Path(library).name in linked_libraries(accelerator)
    assert "[$ORIGIN]" in run("readelf", "--dynamic", "--wide", accelerator)


@pytest.mark.parametrize(
    ("runtime", "exported"),
    [
        ("jax", ["polyop_jax", "polyop_jax_cuda"]),
        ("executorch", ["polyop_executorch_register"]),
        ("tvm_ffi", ["__tvm_ffi_call"]),
    ],
)
def test_small_libraries_link_the_library(library, runtime, exported):
    small = Path(library).with_name(f"libpolyop_{runtime}.so")
    assert exports(small) == exported
    assert Path(library).name in linked_libraries(small)
    assert "[$ORIGIN]" in run("readelf", "--dynamic", "--wide", small)


def test_torch_library_exports(library):
    torch_library = Path(library).with_name("libpolyop_torch.so")
    assert exports(torch_library) == EXPORTS["torch"]


def test_plugin_library_does_not_link_tensorrt(not_run):
    plugins = get_tensorrt_op_path()
    if not plugins:
        not_run("without CUDA there is no plugin library to look at")
        return
    assert exports(plugins) == ["getCreators", "polyop_sdk_version", "setLoggerFinder"]
    assert [name for name in linked_libraries(plugins) if not name.startswith(GLIBC)] == []


def test_library_links_nothing_but_glibc(library):
    assert [name for name in linked_libraries(library) if not name.startswith(GLIBC)] == []


def test_program_links_nothing_but_glibc(program):
    assert [name for name in linked_libraries(program) if not name.startswith(GLIBC)] == []


def test_program_prints_its_version(program):
    assert polyop.__version__ in run(program, "--version")


def test_notices_agree_with_what_is_linked_and_installed():
    """Also tests the check: a library without a notice, and a copyright holder without a name."""
    import check_notices

    build = ROOT / "build" / "release"
    assert check_notices.problems(build) == []
    check_notices.COMPONENTS, kept = check_notices.COMPONENTS[1:], check_notices.COMPONENTS
    try:
        assert any("libpolyop_hwy.a is linked" in line for line in check_notices.problems(build))
        check_notices.COMPONENTS = [check_notices.Component("zlib", [ROOT / "LICENSE"], "License: Zlib", "libz.a")]
        said = check_notices.problems(build)
        assert any("does not name Jean-loup Gailly" in line for line in said)
        assert any("does not mention License: Zlib" in line for line in said)
    finally:
        check_notices.COMPONENTS = kept


def test_program_prints_the_licences(program):
    assert run(program, "--licenses") == (ROOT / "THIRD_PARTY_LICENSES").read_text()


@pytest.mark.slow
def test_wheel_serves_every_python_3(wheel):
    name, version, python, abi, platform = wheel.stem.split("-")
    assert (name, version) == ("polyop", polyop.__version__)
    assert (python, abi) == ("py3", "none")
    assert platform.startswith("linux_")


@pytest.mark.slow
def test_wheel_contents(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    folder = f"polyop-{polyop.__version__}"
    assert {
        "polyop/__init__.py",
        "polyop/py.typed",
        "polyop/lib/libpolyop_accelerator.so",
        "polyop/lib/libpolyop_onnxruntime.so",
        "polyop/lib/formulas/bilinear_formula.py",
        "polyop/lib/formulas/roi_align_formula.py",
        "polyop/lib/cmake/polyop/polyopConfig.cmake",
        "polyop/include/polyop/onnxruntime.h",
        "polyop/include/polyop/polyop.h",
        "polyop/share/polyop/sdk/core/operator.h",
        f"{folder}.data/scripts/polyop",
        f"{folder}.dist-info/licenses/LICENSE",
        f"{folder}.dist-info/licenses/THIRD_PARTY_LICENSES",
    } <= names
    allowed = re.compile(
        rf"polyop/[\w/]+\.(py|pyi|typed|so)|{folder}\.(data/scripts|dist-info)/.+"
        r"|polyop/lib/cmake/polyop/polyopConfig(Version)?\.cmake|polyop/include/polyop/(onnxruntime|polyop)\.h"
        r"|polyop/share/polyop/sdk/.+\.(cc|cmake|cu|h|hpp|in|map|txt)"
    )
    assert [name for name in names if not allowed.fullmatch(name)] == []


@pytest.mark.slow
def test_pip_install_into_a_fresh_environment(tmp_path, wheel):
    """Installs the wheel in a new environment, with numpy, onnx and ONNX Runtime of this one."""
    environment = tmp_path / "venv"
    run(sys.executable, "-m", "venv", environment)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", wheel)
    mine = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    theirs = run(sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    output = run(python, "-c", SESSION, cwd=tmp_path, env=clean | {"PYTHONPATH": f"{mine}:{theirs}"})
    assert output.startswith("[3.0, 6.0, 9.0]")
    assert mine in output
    assert polyop.__version__ in run(environment / "bin" / "polyop", "--version")


@pytest.mark.slow
def test_pip_install_from_source(tmp_path):
    """`pip install .` with pip's own isolated build environment and no build tree to reuse."""
    build = ROOT / "build" / "wheel-isolated"  # the same depth as the others: ccache compares relative paths
    shutil.rmtree(build, ignore_errors=True)
    environment = tmp_path / "venv"
    run(sys.executable, "-m", "venv", environment)
    python = environment / "bin" / "python"
    # ONNX's file format is compiled; ccache has .venv's version. pip calls the variable by two names.
    pinned = {f"PIP_{kind}": str(ROOT / "requirements" / "demo.txt") for kind in ("CONSTRAINT", "BUILD_CONSTRAINT")}
    run(python, "-m", "pip", "install", "--quiet", ".", f"-Cbuild-dir={build}", cwd=ROOT, env=os.environ | pinned)
    output = run(python, "-c", "import polyop; print(polyop.get_onnxruntime_op_path())", cwd=tmp_path)
    assert output.startswith(str(environment))
    assert polyop.__version__ in run(environment / "bin" / "polyop", "--version")
