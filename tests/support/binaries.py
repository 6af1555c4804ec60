# SPDX-License-Identifier: Apache-2.0
"""Exported symbols and linked libraries of binaries."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.processes import run

# glibc's own libraries are on every Linux. Everything else must be linked statically.
GLIBC = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-")

# The symbols that callers look up in each library.
EXPORTS = {
    "onnxruntime": [
        "CreateEpFactories",
        "RegisterCustomOps",
        "ReleaseEpFactory",
        "polyop_accelerator_version",
        "polyop_call",
        "polyop_call_on_device",
        "polyop_catalogue",
        "polyop_draw_rows",
        "polyop_find_pattern",
        "polyop_force_isa",
        "polyop_read_device",
        "polyop_register_accelerator",
        "polyop_resize",
        "polyop_resolve_node",
        "polyop_sdk_version",
        "polyop_shapes",
        "polyop_use_reference_kernels",
    ],
    "accelerator": ["RegisterCustomOps"],
    "torch": ["polyop_catalogue", "polyop_force_isa", "polyop_sdk_version", "polyop_shapes", "polyop_torch_register"],
}


def linked_libraries(binary: str | Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "--dynamic", "--wide", binary))


def exports(library: str) -> list[str]:
    return sorted(line.split()[-1] for line in run("nm", "--dynamic", "--defined-only", library).splitlines())
