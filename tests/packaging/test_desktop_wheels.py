# SPDX-License-Identifier: Apache-2.0
"""The wheels for Windows and macOS in dist/: what their libraries need, import and export. Nothing of them is run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import polyop
from tests.support import macho
from tests.support.binaries import EXPORTS
from tests.support.processes import ROOT

pytestmark = pytest.mark.slow

SYSTEM = "/usr/lib/libSystem.B.dylib"
# zig's linker has no list of exported symbols: also exported are functions of the C++ runtime, what the linker defines
# itself, and those functions of the core that other libraries list.
NOT_OURS = re.compile(r"_Zn[wa]|_Zd[la]|__dso_handle$|_mh_dylib_header$")
ALSO_ON_MACOS = {"torch": ["polyop_draw_rows", "polyop_find_pattern", "polyop_resolve_node"]}
RUNTIME = {"onnxruntime": set(), "accelerator": {"@rpath/libpolyop_onnxruntime.dylib"}, "torch": set()}


def wheel(tag: str) -> Path | None:
    found = sorted((ROOT / "dist").glob(f"polyop-{polyop.__version__}-py3-none-{tag}.whl"))
    return found[-1] if found else None


@pytest.fixture
def unpacked(tmp_path: Path, not_run: Callable[[str], None]) -> Callable[[str], Path | None]:
    def unpack(tag: str) -> Path | None:
        file = wheel(tag)
        if file is None:
            not_run(f"{tag}: there is no wheel of this version in dist/: run `make wheels`")
            return None
        with zipfile.ZipFile(file) as archive:
            archive.extractall(tmp_path)
        return tmp_path / "polyop"

    return unpack


@pytest.fixture(scope="module")
def mac_torch(tmp_path_factory: pytest.TempPathFactory) -> macho.Library:
    """PyTorch's own library, of its wheel for macOS."""
    line = next(line for line in (ROOT / "requirements" / "torch.txt").read_text().splitlines() if line[:5] == "torch")
    folder = tmp_path_factory.mktemp("torch")
    platforms = [f"--platform=macosx_{version}_0_arm64" for version in (11, 12, 13, 14)]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--only-binary=:all:",
         "--python-version=3.11", *platforms, "--target", folder, line], check=True
    )  # fmt: skip
    return macho.read(folder / "torch" / "lib" / "libtorch_cpu.dylib")


@pytest.mark.parametrize("name", EXPORTS)
def test_macos(name: str, unpacked: Callable[[str], Path | None]) -> None:
    package = unpacked("macosx_12_0_arm64")
    if package is None:
        return
    assert {file.name for file in (package / "lib").iterdir() if file.is_file()} == {
        f"libpolyop_{library}.dylib" for library in EXPORTS
    }
    library = macho.read(package / "lib" / f"libpolyop_{name}.dylib")
    assert library.processor == macho.ARM64
    assert library.minimum == "12.0"
    assert library.is_signed
    assert not library.has_debug_symbols
    assert library.name == f"@rpath/libpolyop_{name}.dylib"
    assert set(library.needed) == {SYSTEM, *RUNTIME[name]}
    assert library.search_paths == (["@loader_path"] if name == "accelerator" else [])
    ours = sorted(symbol for symbol in library.exported if not NOT_OURS.match(symbol))
    assert ours == sorted(EXPORTS[name] + ALSO_ON_MACOS.get(name, []))


def test_macos_pytorch_has_what_the_library_for_windows_calls(mac_torch: macho.Library) -> None:
    listed = set(re.findall(r"^\s*(\w+)", (ROOT / "adapters" / "torch" / "torch_cpu.def").read_text(), re.MULTILINE))
    assert len(listed) > 20
    assert listed - {"LIBRARY", "EXPORTS"} <= mac_torch.exported


def test_macos_pytorch_has_what_the_library_calls(
    unpacked: Callable[[str], Path | None], mac_torch: macho.Library
) -> None:
    package = unpacked("macosx_12_0_arm64")
    if package is None:
        return
    library = macho.read(package / "lib" / "libpolyop_torch.dylib")
    called = {symbol for symbol in library.imported if symbol.startswith(("aoti_", "torch_"))}
    assert len(called) > 20
    assert called <= mac_torch.exported
    assert not {symbol for symbol in library.imported if symbol.startswith("_Z") and "torch" in symbol}


def test_windows_wheel_has_the_package_its_libraries_and_the_program(unpacked: Callable[[str], Path | None]) -> None:
    """tests/windows/on_windows.py checks imports and exports of the libraries, and runs the program."""
    package = unpacked("win_amd64")
    if package is None:
        return
    assert {file.name for file in (package / "lib").iterdir() if file.is_file()} == {
        f"polyop_{library}.dll" for library in EXPORTS
    }
    files = {file.suffix for file in package.rglob("*") if file.is_file()}
    assert not files & {".pdb", ".lib", ".a", ".so", ".dylib", ".exe"}
    assert os.path.getsize(package / "lib" / "polyop_onnxruntime.dll") > 100_000
    scripts = package.parent / f"polyop-{polyop.__version__}.data" / "scripts"
    assert [file.name for file in scripts.iterdir()] == ["polyop.exe"]
