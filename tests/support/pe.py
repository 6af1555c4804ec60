# SPDX-License-Identifier: Apache-2.0
"""Reads a DLL or a program for Windows: its processor, the DLLs that it needs, and what it exports."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

MACHINES = {0x8664: "x86_64", 0xAA64: "arm64"}


@dataclass(frozen=True)
class Binary:
    machine: str
    needed: frozenset[str]
    exported: frozenset[str]


def machine_offset(content: bytes) -> int:
    """Returns the position of the 16 bits that name the processor."""
    (header,) = struct.unpack_from("<I", content, 0x3C)
    assert content[header : header + 4] == b"PE\0\0"
    return header + 4


def read(file: Path) -> Binary:
    """Reads a file of 64 bits."""
    content = file.read_bytes()
    coff = machine_offset(content)
    machine, section_count = struct.unpack_from("<HH", content, coff)
    (optional_size,) = struct.unpack_from("<H", content, coff + 16)
    optional = coff + 20
    assert struct.unpack_from("<H", content, optional) == (0x20B,)
    export_table, _, import_table, _ = struct.unpack_from("<4I", content, optional + 112)
    sections = [struct.unpack_from("<4I", content, optional + optional_size + 40 * i + 8) for i in range(section_count)]

    def at(address: int) -> int:
        """Returns the position in the file of an address in memory."""
        for size, start, raw_size, raw in sections:
            if start <= address < start + max(size, raw_size):
                return address - start + raw
        raise ValueError(f"{file}: expected an address in a section, got {address:#x}")

    def text(address: int) -> str:
        start = at(address)
        return content[start : content.index(b"\0", start)].decode()

    needed, exported = set(), set()
    entry = at(import_table) if import_table else None
    while entry is not None and any(fields := struct.unpack_from("<5I", content, entry)):
        needed.add(text(fields[3]))
        entry += 20
    if export_table:
        count, _, names = struct.unpack_from("<3I", content, at(export_table) + 24)
        exported = {text(address) for address in struct.unpack_from(f"<{count}I", content, at(names))}
    return Binary(MACHINES[machine], frozenset(needed), frozenset(exported))
