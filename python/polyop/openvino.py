"""polyop's operators in OpenVINO, on the CPU.

import polyop.openvino

core = polyop.openvino.core()
model = core.compile_model("model.onnx", "CPU")

OpenVINO's libraries change their names with each release, so polyop's is linked to none of them: `core` makes the symbols
of the installed one known, and then adds the extension. One library serves OpenVINO 2026.0 and newer.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import polyop
from polyop.packages import libraries

__all__ = ["OLDEST", "core", "get_openvino_op_path"]

OLDEST = (2026, 0)


def get_openvino_op_path() -> str:
    """Path of polyop's library of OpenVINO extensions. `core` loads it; `ov.Core.add_extension` alone cannot, unless
    libopenvino's symbols are known to the whole process. Raises FileNotFoundError if it was not built."""
    return polyop._existing("libpolyop_openvino.so", "OpenVINO")


def core() -> Any:
    """A new `openvino.Core` that knows polyop's nodes and those of packages of operators, in ONNX files and in OpenVINO's own.

    Raises ImportError where there is no OpenVINO, or one before 2026.0, and FileNotFoundError without polyop's library.
    """
    try:
        import openvino
    except ImportError as error:
        raise ImportError("polyop.openvino needs OpenVINO 2026.0 or newer: pip install openvino") from error
    _check_version(openvino.__version__)
    _share_symbols(Path(openvino.__file__).parent / "libs")
    made = openvino.Core()
    made.add_extension(get_openvino_op_path())
    for _, library in libraries("openvino"):
        made.add_extension(str(library))
    return made


def _check_version(version: str) -> None:
    release = tuple(int(part) for part in version.split("-")[0].split(".")[:2])
    if release < OLDEST:
        raise ImportError(
            f"polyop.openvino needs OpenVINO 2026.0 or newer, not {version}: older ones have another C++ ABI"
        )


def _share_symbols(folder: Path) -> None:
    """Makes what is loaded of OpenVINO, and the TBB that came with it, visible to libraries that are loaded later."""
    libraries = [*folder.glob("libopenvino.so.*"), *folder.glob("libtbb.so.*")]
    if not any(library.name.startswith("libopenvino.so") for library in libraries):
        raise ImportError(f"there is no libopenvino.so in {folder}: polyop.openvino needs OpenVINO's Python package")
    for library in libraries:
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
