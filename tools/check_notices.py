#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks THIRD_PARTY_LICENSES against the libraries that a build links and the licences of the installed packages.

Each static library that build.ninja links into the program or a library must have a section. The copyright file of its
package must name the section's holders and its licence. The libraries that zig adds are checked in builds by zig.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOC = Path("/usr/share/doc")
ZIG = ROOT / ".deps" / "wheel-tools" / "ziglang"


@dataclass
class Component:
    section: str
    copyright: list[Path]  # the first existing file is read
    licence: str  # a regular expression
    archive: str = ""  # the static library; empty for headers
    compiler: str = ""  # the compiler that adds it; empty for all compilers


def packages(*names: str) -> list[Path]:
    return [DOC / name / "copyright" for name in names]


def gcc() -> list[Path]:
    found = (path for path in DOC.glob("gcc-*-base/copyright") if re.fullmatch(r"gcc-\d+-base", path.parent.name))
    return sorted(found, key=lambda path: int(path.parent.name.split("-")[1]))


def onnx() -> list[Path]:
    try:
        files = distribution("onnx").files or []
    except PackageNotFoundError:
        return []
    return [Path(f.locate()) for f in files if f.name == "METADATA"]


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
    Component("pocketfft", [ROOT / ".deps/pocketfft/pocketfft_hdronly.h"], "Redistribution and use"),
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

# Libraries of CUDA builds without a notice: CUDA's runtime, whose licence is not installed, and glibc's empty librt.a.
CUDA = ("libcudart_static.a", "libcudadevrt.a", "librt.a")

# Linked only into tests.
TESTS_ONLY = {"libgtest.a", "libgtest_main.a"}


def sections(text: str) -> dict[str, list[str]]:
    """Returns the lines of each section by its title. The notices end at the first rule."""
    notices = text.split("\n" + "-" * 120)[0]
    blocks = [block.splitlines() for block in notices.split("\n\n")]
    return {block[0]: [line.strip() for line in block[1:]] for block in blocks}


def holders(lines: list[str]) -> list[str]:
    """Returns the holders' names, without years, which differ between versions."""
    found = (re.match(r"Copyright (?:\([cC]\) )?(?:[\d, -]+ )?(.*)", line) for line in lines)
    return [match[1].removesuffix(" All rights reserved.") for match in found if match]


def problems(build: Path) -> list[str]:
    found = sections((ROOT / "THIRD_PARTY_LICENSES").read_text())
    ninja = (build / "build.ninja").read_text()
    linked = set(re.findall(r"[\w./+-]*/?(lib[\w+-]+\.a)\b", ninja)) - TESTS_ONLY
    linked = {archive for archive in linked if not archive.startswith("libpolyop_room_")}  # the project's own code
    compiler = "zig" if "zig-c++" in (build / "CMakeFiles" / "rules.ninja").read_text() else "g++"
    messages = []
    for archive in sorted(linked - {c.archive for c in COMPONENTS}):
        if archive not in CUDA:
            messages.append(f"{archive} is linked, but tools/check_notices.py has no component for it")
    for component in COMPONENTS:
        if component.compiler not in ("", compiler):
            continue
        lines = found.get(component.section)
        if lines is None:
            messages.append(f"THIRD_PARTY_LICENSES has no section '{component.section}'")
            continue
        source = next((path for path in component.copyright if path.is_file()), None)
        if source is None:
            messages.append(
                f"{component.section}: none of these files exists: {', '.join(map(str, component.copyright))}"
            )
            continue
        words = " ".join(source.read_text(errors="replace").split())
        if not holders(lines):
            messages.append(f"THIRD_PARTY_LICENSES: '{component.section}' has no copyright holder")
        for holder in holders(lines):
            if not all(name.strip(" .").lower() in words.lower() for name in re.split(r", | and ", holder)):
                messages.append(f"{component.section}: {source} does not name {holder}")
        if not re.search(component.licence, words, re.IGNORECASE):
            messages.append(f"{component.section}: {source} does not mention {component.licence}")
    return messages


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "build", nargs="?", type=Path, default=ROOT / "build" / "release", help="default: build/release"
    )
    found = problems(parser.parse_args().build)
    print("\n".join(found) or f"{len(COMPONENTS)} notices agree with the linked and installed libraries")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
