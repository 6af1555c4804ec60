# SPDX-License-Identifier: Apache-2.0
"""Tests the libraries for musl, for riscv64 and for Windows on Arm: what they need and export, results and errors in a
C program.

tools/test_systems.sh builds them and runs this file; pytest does not collect it on its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import pe
from tests.support.binaries import EXPORTS, GLIBC, exports, linked_libraries
from tests.support.processes import ROOT

# The command that starts a program of the system, and the libraries that the system has.
LINUX = {
    "musl": (["/lib/ld-musl-x86_64.so.1"], ("libc.so",)),
    "riscv64": (["qemu-riscv64", "-L", "/usr/riscv64-linux-gnu"], GLIBC),
}
SYSTEMS = os.environ["POLYOP_SYSTEMS"].split()
WITH_PROGRAM = [system for system in SYSTEMS if system in LINUX]


def library(system: str) -> Path:
    name = "libpolyop_onnxruntime.so" if system in LINUX else "polyop_onnxruntime.dll"
    folders = [ROOT / "build" / "portable" / system / "tests" / folder for folder in ("lib", "bin")]
    return next(folder / name for folder in folders if (folder / name).is_file())


@pytest.mark.parametrize("system", SYSTEMS)
def test_only_libraries_of_the_system_are_needed(system: str) -> None:
    if system in LINUX:
        assert all(name.startswith(LINUX[system][1]) for name in linked_libraries(library(system)))
        return
    binary = pe.read(library(system))
    assert binary.machine == "arm64"
    assert all(re.fullmatch(r"KERNEL32\.dll|api-ms-win-crt-.*\.dll", name, re.IGNORECASE) for name in binary.needed)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_library_exports_what_that_of_this_machine_does(system: str) -> None:
    exported = exports(str(library(system))) if system in LINUX else pe.read(library(system)).exported
    assert set(exported) == set(EXPORTS["onnxruntime"])


def start(program: list[str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*program, *words], capture_output=True, encoding="utf-8", check=False)


if WITH_PROGRAM:

    @pytest.fixture(scope="module", params=WITH_PROGRAM)
    def suppress(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
        """Compiles examples/c, a program that suppresses boxes. Returns the command that starts it."""
        system = request.param
        folder = tmp_path_factory.mktemp("c")
        (folder / "polyop").mkdir()
        shutil.copy(ROOT / "adapters" / "c" / "polyop.h", folder / "polyop")
        libraries = library(system).parent
        linked = ["-L", libraries, "-lpolyop_onnxruntime", f"-Wl,-rpath,{libraries}"]
        zig = ROOT / "build" / "portable" / system / "zig" / "zig-cc"
        command = [zig, "-dynamic", "-I", folder, ROOT / "examples" / "c" / "nms.c", *linked]
        subprocess.run([*command, "-o", folder / "nms"], check=True)
        return [*LINUX[system][0], str(folder / "nms")]

    def test_a_program_calls_the_library(suppress: list[str]) -> None:
        assert start(suppress).stdout == "keep box 1\nkeep box 2\n"
        assert start(suppress, "0.9").stdout == "keep box 1\nkeep box 0\nkeep box 2\n"

    def test_an_error_of_the_library_arrives(suppress: list[str]) -> None:
        done = start(suppress, "nan")
        assert done.returncode == 1
        assert "polyop::nms: attribute 'iou_threshold': expected" in done.stderr
