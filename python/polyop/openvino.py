# SPDX-License-Identifier: Apache-2.0
"""polyop's operators in OpenVINO, on the CPU.

import polyop.openvino

core = polyop.openvino.core()
model = core.compile_model("model.onnx", "CPU")

OpenVINO's libraries have a new name in each release, so polyop's library does not link to them: `core` exports the
symbols of the installed release, then adds the extension. One library serves OpenVINO 2026.0 and newer.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from polyop._base.libraries import find_library, library_file, require_library
from polyop._base.packages import libraries

__all__ = ["OLDEST", "core", "get_openvino_op_path"]

OLDEST = (2026, 0)
_LIBRARY = library_file("polyop", "openvino")


def get_openvino_op_path() -> str:
    """Returns the path of polyop's library of OpenVINO extensions.

    `core` loads it. `ov.Core.add_extension` can load it only if libopenvino's symbols are visible to the whole process.
    Raises FileNotFoundError if this polyop does not have it.
    """
    return require_library(_LIBRARY, "OpenVINO")


def core() -> Any:
    """Returns a new `openvino.Core` with polyop's operators and those of packages, for ONNX files and OpenVINO's own
    format.

    Wheels for Windows and macOS lack polyop's library for OpenVINO. The core then has the operators of packages alone.
    Raises ImportError if OpenVINO is not installed or older than 2026.0, and FileNotFoundError if no library is
    installed.
    """
    try:
        import openvino
    except ImportError as error:
        raise ImportError("polyop.openvino needs OpenVINO 2026.0 or newer: pip install openvino") from error
    _check_version(openvino.__version__)
    _share_symbols(Path(openvino.__file__).parent / "libs")
    of_packages = [str(library) for _, library in libraries("openvino")]
    own = [] if of_packages and not find_library(_LIBRARY).is_file() else [get_openvino_op_path()]
    result = openvino.Core()
    for library in [*own, *of_packages]:
        result.add_extension(library)
    return result


def _check_version(version: str) -> None:
    release = tuple(int(part) for part in version.split("-")[0].split(".")[:2])
    if release < OLDEST:
        raise ImportError(
            f"polyop.openvino: expected OpenVINO 2026.0 or newer, got {version}: older releases have a different C++ ABI"
        )


def _share_symbols(folder: Path) -> None:
    """Makes the symbols of OpenVINO and its TBB visible to libraries that are loaded later."""
    libraries = [*folder.glob("libopenvino.so.*"), *folder.glob("libtbb.so.*")]
    if not any(library.name.startswith("libopenvino.so") for library in libraries):
        raise ImportError(
            f"polyop.openvino: expected libopenvino.so in {folder}, found none: install OpenVINO's Python package"
        )
    for library in libraries:
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
