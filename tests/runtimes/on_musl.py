"""Tests the library for musl in a C program: what it needs, results and errors.

tools/test_musl.sh builds it and runs this file; pytest does not collect it on its own.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.binaries import EXPORTS, exports, linked_libraries
from tests.support.processes import ROOT

PORTABLE = ROOT / "build" / "portable" / "musl"
LIBRARY = PORTABLE / "tests" / "lib" / "libpolyop_onnxruntime.so"
LOADER = "/lib/ld-musl-x86_64.so.1"


def test_only_the_c_library_is_needed() -> None:
    assert linked_libraries(LIBRARY) == ["libc.so"]


def test_the_library_exports_what_that_for_glibc_does() -> None:
    assert exports(str(LIBRARY)) == EXPORTS["onnxruntime"]


@pytest.fixture(scope="module")
def suppress(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiles examples/c, a program that suppresses boxes."""
    folder = tmp_path_factory.mktemp("c")
    (folder / "polyop").mkdir()
    shutil.copy(ROOT / "adapters" / "c" / "polyop.h", folder / "polyop")
    linked = ["-L", LIBRARY.parent, "-lpolyop_onnxruntime", f"-Wl,-rpath,{LIBRARY.parent}"]
    command = [PORTABLE / "zig" / "zig-cc", "-dynamic", "-I", folder, ROOT / "examples" / "c" / "nms.c", *linked]
    subprocess.run([*command, "-o", folder / "nms"], check=True)
    return folder / "nms"


def start(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LOADER, program, *words], capture_output=True, encoding="utf-8", check=False)


def test_a_program_calls_the_library(suppress: Path) -> None:
    assert start(suppress).stdout == "keep box 1\nkeep box 2\n"
    assert start(suppress, "0.9").stdout == "keep box 1\nkeep box 0\nkeep box 2\n"


def test_an_error_of_the_library_arrives(suppress: Path) -> None:
    done = start(suppress, "nan")
    assert done.returncode == 1
    assert "polyop::nms: attribute 'iou_threshold': expected" in done.stderr
