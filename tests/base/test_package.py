# SPDX-License-Identifier: Apache-2.0
"""`import polyop`: names of first use, and errors that name what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import polyop
from polyop.errors import MissingLibraryError


def test_both_function_names_give_the_library():
    assert polyop.get_library_path() == polyop.get_onnxruntime_op_path()
    assert Path(polyop.get_library_path()).name == "libpolyop_onnxruntime.so"


def test_missing_library_error(tmp_path):
    copy = tmp_path / "polyop"
    (copy / "_base").mkdir(parents=True)
    for name in ("__init__.py", "_base/__init__.py", "_base/isolation.py", "_base/libraries.py", "errors.py"):
        (copy / name).write_bytes(Path(polyop.__file__).parent.joinpath(name).read_bytes())
    code = "import polyop; polyop.get_onnxruntime_op_path()"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "polyop.errors.MissingLibraryError: polyop's ONNX Runtime library is missing" in done.stderr
    assert "In a checkout run `make build`; otherwise install polyop's wheel: pip install dist/" in done.stderr
    assert issubclass(MissingLibraryError, FileNotFoundError)


@pytest.mark.parametrize(
    ("use", "missing", "said"),
    [
        (
            "polyop.session",
            "onnxruntime",
            "ImportError: polyop.session needs ONNX Runtime 1.17 or newer: pip install onnxruntime",
        ),
        (
            "polyop.openvino.core()",
            "openvino",
            "ImportError: polyop.openvino needs OpenVINO 2026.0 or newer: pip install openvino",
        ),
        (
            "polyop.nms",
            "torch",
            "ModuleNotFoundError: polyop.nms needs the package 'torch': pip install 'polyop[torch]'",
        ),
        (
            "polyop.RoIAlign",
            "torch",
            "ModuleNotFoundError: polyop.RoIAlign needs the package 'torch': pip install 'polyop[torch]'",
        ),
        (
            "polyop.export",
            "rich",
            "ModuleNotFoundError: polyop.export needs the package 'rich': pip install 'polyop[export]'",
        ),
        (
            "polyop.optimize",
            "onnx_ir",
            "ModuleNotFoundError: polyop.optimize needs the package 'onnx_ir': pip install 'polyop[optimize]'",
        ),
        (
            "polyop.batch.run",
            "PIL",
            "ModuleNotFoundError: polyop.batch needs the package 'PIL': pip install 'polyop[batch]'",
        ),
    ],
)
def test_missing_packages(use, missing, said):
    code = f"import sys; sys.modules[{missing!r}] = None; import polyop; {use}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == said


def test_names_of_first_use_are_listed_and_suggested():
    """Interpreters complete them, and importing none of them is necessary for that."""
    text = "import polyop, sys; print(*dir(polyop)); assert 'torch' not in sys.modules; polyop.sessions"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    names = set(done.stdout.split())
    assert {"session", "export", "optimize", "accelerate", "openvino", "nms", "RoIAlign", "get_library_path"} <= names
    assert all(hasattr(polyop, name) for name in names if not name.startswith("_")), names
    assert done.stderr.splitlines()[-1] == (
        "AttributeError: module 'polyop' has no attribute 'sessions'. Did you mean: 'session'?"
    )
