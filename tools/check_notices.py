#!/usr/bin/env python3
"""check_notices.py [BUILD]: holds THIRD_PARTY_LICENSES against what is linked and what the installed packages say.

Each static library that build.ninja of BUILD (default: build/release) links into the program or a library must have a
section, and the copyright file of the package that it comes from must name the section's holders and its licence. What
zig brings is looked at where it compiled BUILD.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOC = Path("/usr/share/doc")
ZIG = ROOT / ".deps" / "wheel-tools" / "ziglang"


@dataclass
class Component:
    section: str
    copyright: list[Path]  # the first that exists is read
    licence: str  # a regular expression
    archive: str = ""  # the static library; headers have none
    compiler: str = ""  # whose own it is; empty: any compiler's build has it


def packages(*names: str) -> list[Path]:
    return [DOC / name / "copyright" for name in names]


def gcc() -> list[Path]:
    found = (path for path in DOC.glob("gcc-*-base/copyright") if re.fullmatch(r"gcc-\d+-base", path.parent.name))
    return sorted(found, key=lambda path: int(path.parent.name.split("-")[1]))


def onnx() -> list[Path]:
    return [Path(f.locate()) for f in distribution("onnx").files or [] if f.name == "METADATA"]


COMPONENTS = [
    Component("Highway", [ROOT / ".deps/highway/LICENSE-BSD3"], "Redistribution and use", "libpolyop_hwy.a"),
    Component("GCC's libstdc++ and libgcc", gcc(), "Runtime Library Exception", compiler="g++"),
    Component(
        "LLVM's libc++, libc++abi and libunwind", [ZIG / "lib/libcxx/LICENSE.TXT"], "LLVM Exceptions", compiler="zig"
    ),
    Component("zig's compiler runtime", [ZIG / "LICENSE"], "MIT License", compiler="zig"),
    Component(
        "GNU C Library", [ZIG / "lib/libc/glibc/stdlib/atexit.c"], "unlimited permission to link", compiler="zig"
    ),
    Component("ONNX Runtime", [ROOT / ".deps/onnxruntime/include/onnxruntime_c_api.h"], "MIT License"),
    Component("JSON for Modern C++ (nlohmann-json)", packages("nlohmann-json3-dev"), "License: Expat"),
    Component("ONNX", onnx(), "Apache"),
    Component("Protocol Buffers", packages("libprotobuf-dev"), "License: BSD-3-Clause", "libprotobuf.a"),
    Component("CLI11", packages("libcli11-dev"), "License: BSD-3-clause"),
    Component("zlib", packages("zlib1g-dev"), "License: Zlib", "libz.a"),
    Component("minizip", packages("libminizip-dev"), "License: zlib", "libminizip.a"),
    Component("libpng", packages("libpng-dev"), "License: libpng", "libpng.a"),
    Component("GoogleTest", packages("libgtest-dev"), "License: BSD-C3"),
    Component("libjpeg-turbo", packages("libturbojpeg0-dev"), "License: BSD-BY-LC-NE", "libturbojpeg.a"),
]

# In a build with CUDA: its runtime, whose licence is not on this machine, and glibc's librt.a, which is empty.
CUDA = ("libcudart_static.a", "libcudadevrt.a", "librt.a")

# Linked into tests alone.
TESTS_ONLY = {"libgtest.a", "libgtest_main.a"}


def sections(text: str) -> dict[str, list[str]]:
    """The lines of each section, by its title: the notices stand before the first rule."""
    notices = text.split("\n" + "-" * 120)[0]
    blocks = [block.splitlines() for block in notices.split("\n\n")]
    return {block[0]: [line.strip() for line in block[1:]] for block in blocks}


def holders(lines: list[str]) -> list[str]:
    """Names without years, which differ between versions."""
    found = (re.match(r"Copyright (?:\([cC]\) )?(?:[\d, -]+ )?(.*)", line) for line in lines)
    return [match[1].removesuffix(" All rights reserved.") for match in found if match]


def problems(build: Path) -> list[str]:
    found = sections((ROOT / "THIRD_PARTY_LICENSES").read_text())
    ninja = (build / "build.ninja").read_text()
    linked = set(re.findall(r"[\w./+-]*/?(lib[\w+-]+\.a)\b", ninja)) - TESTS_ONLY
    linked = {archive for archive in linked if not archive.startswith("libpolyop_family_")}  # its own code
    compiler = "zig" if "zig-c++" in (build / "CMakeFiles" / "rules.ninja").read_text() else "g++"
    said = []
    for archive in sorted(linked - {c.archive for c in COMPONENTS}):
        if archive not in CUDA:
            said.append(f"{archive} is linked, but no component of tools/check_notices.py names it")
    for component in COMPONENTS:
        if component.compiler not in ("", compiler):
            continue
        lines = found.get(component.section)
        if lines is None:
            said.append(f"THIRD_PARTY_LICENSES has no section '{component.section}'")
            continue
        source = next((path for path in component.copyright if path.is_file()), None)
        if source is None:
            said.append(f"{component.section}: none of {', '.join(map(str, component.copyright))} is there")
            continue
        words = " ".join(source.read_text(errors="replace").split())
        if not holders(lines):
            said.append(f"THIRD_PARTY_LICENSES: '{component.section}' names no holder of a copyright")
        for holder in holders(lines):
            if not all(name.strip(" .").lower() in words.lower() for name in re.split(r", | and ", holder)):
                said.append(f"{component.section}: {source} does not name {holder}")
        if not re.search(component.licence, words, re.IGNORECASE):
            said.append(f"{component.section}: {source} does not say {component.licence}")
    return said


def main() -> int:
    said = problems(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "release")
    print("\n".join(said) or f"{len(COMPONENTS)} notices agree with what is linked and installed")
    return bool(said)


if __name__ == "__main__":
    sys.exit(main())
