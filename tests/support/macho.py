# SPDX-License-Identifier: Apache-2.0
"""Reads dynamic libraries of macOS for 64-bit processors: what they need, import and export."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

MAGIC, ARM64 = 0xFEEDFACF, 0x0100000C
# Load commands.
SYMTAB, LOAD_DYLIB, ID_DYLIB, RPATH, CODE_SIGNATURE, BUILD_VERSION = 0x2, 0xC, 0xD, 0x8000001C, 0x1D, 0x32
EXTERNAL, PRIVATE, TYPE, DEBUG = 0x01, 0x10, 0x0E, 0xE0  # bits of a symbol's type


@dataclass
class Library:
    processor: int
    name: str = ""
    needed: list[str] = field(default_factory=list)
    search_paths: list[str] = field(default_factory=list)
    minimum: str = ""  # version of macOS
    is_signed: bool = False
    exported: set[str] = field(default_factory=set)  # without the leading underscore
    imported: set[str] = field(default_factory=set)
    has_debug_symbols: bool = False


def text_at(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()


def read(path: Path) -> Library:
    data = path.read_bytes()
    magic, processor, _, _, count, _, _, _ = struct.unpack_from("<8I", data)
    assert magic == MAGIC, f"{path}: expected a 64-bit Mach-O file"
    library = Library(processor)
    at = 32
    for _ in range(count):
        command, size = struct.unpack_from("<2I", data, at)
        if command in (LOAD_DYLIB, ID_DYLIB, RPATH):
            text = text_at(data, at + struct.unpack_from("<I", data, at + 8)[0])
            if command == ID_DYLIB:
                library.name = text
            else:
                (library.needed if command == LOAD_DYLIB else library.search_paths).append(text)
        elif command == BUILD_VERSION:
            version = struct.unpack_from("<I", data, at + 12)[0]
            library.minimum = f"{version >> 16}.{version >> 8 & 255}"
        elif command == CODE_SIGNATURE:
            library.is_signed = True
        elif command == SYMTAB:
            read_symbols(data, *struct.unpack_from("<4I", data, at + 8), library)
        at += size
    return library


def read_symbols(data: bytes, symbols: int, count: int, strings: int, _: int, library: Library) -> None:
    for i in range(count):
        name, kind, _, _, _ = struct.unpack_from("<IBBHQ", data, symbols + 16 * i)
        if kind & DEBUG:
            library.has_debug_symbols = True
        elif kind & EXTERNAL and not kind & PRIVATE:
            found = library.exported if kind & TYPE else library.imported
            found.add(text_at(data, strings + name).removeprefix("_"))
