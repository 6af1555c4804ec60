# SPDX-License-Identifier: Apache-2.0
"""The accelerator refuses a library of operators of another version, which the process loaded before its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import polyop
from polyop._base.libraries import find_library
from tests.support.processes import ROOT

OTHER_VERSION = """
const char* polyop_accelerator_version(void) { return "0.0.1"; }
void* polyop_register_accelerator(void* options, const void* base) { return 0; }
void* RegisterCustomOps(void* options, const void* base) { return 0; }
"""
SCRIPT = """
import ctypes, sys
import onnxruntime

first, accelerator = sys.argv[1:]
library = ctypes.CDLL(first)
options = onnxruntime.SessionOptions()
options.register_custom_ops_library(accelerator)
print("registered")
"""


def register(first: Path, accelerator: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, str(first), str(accelerator)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )


def test_another_version_that_was_loaded_before(tmp_path: Path) -> None:
    name = "libpolyop_onnxruntime.so"
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler, "no C compiler"
    old = tmp_path / name
    command = [compiler, "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{name}", "-o", str(old)]
    subprocess.run(command, input=OTHER_VERSION, text=True, check=True)
    accelerator, own = find_library("libpolyop_accelerator.so"), find_library(name)
    done = register(old, accelerator)
    assert done.returncode != 0
    assert f"expected {name} {polyop.__version__}, got 0.0.1, which this process loaded before" in done.stderr
    done = register(own, accelerator)
    assert done.stdout == "registered\n", done.stderr
