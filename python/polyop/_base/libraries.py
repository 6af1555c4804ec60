# SPDX-License-Identifier: Apache-2.0
"""Paths of polyop's shared libraries."""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

_PREFIX, _SUFFIX = {"win32": ("", ".dll"), "darwin": ("lib", ".dylib")}.get(sys.platform, ("lib", ".so"))


def library_file(library: str, runtime: str) -> str:
    """Returns the file name of a library of operators for a runtime: "libpolyop_torch.so", "polyop_torch.dll"."""
    return f"{_PREFIX}{library}_{runtime}{_SUFFIX}"


def library_of(file: str, runtimes: tuple[str, ...]) -> str | None:
    """Returns the library's name of such a file, or None for other files."""
    match = re.fullmatch(rf"{_PREFIX}(\w+)_(?:{'|'.join(runtimes)}){re.escape(_SUFFIX)}", file)
    return match[1] if match else None


def find_library(name: str) -> Path:
    """Returns the path of a library or folder of libraries, which need not exist.

    POLYOP_LIBRARY_DIR, a folder of libraries that were built with more operators, comes first. Without it, an installed
    package with CUDA kernels comes before this package's own folder.
    """
    if named := os.environ.get("POLYOP_LIBRARY_DIR"):
        return Path(named).absolute() / name
    own = Path(__file__).resolve().parents[1] / "lib"
    return next((folder / name for folder in _cuda_folders() if (folder / name).exists()), own / name)


@cache
def _cuda_folders() -> tuple[Path, ...]:
    """Returns the library folders of polyop-cuda13 and polyop-cuda12, which tools/cuda_wheel.sh builds, newer CUDA
    first.

    Skips a package whose version differs from polyop's, with a warning.
    """
    from importlib.metadata import PackageNotFoundError, distribution  # takes as long to import as all of this package

    from polyop import __version__  # here, because polyop imports this module

    found = []
    for cuda in (13, 12):
        try:
            package = distribution(f"polyop-cuda{cuda}")
        except PackageNotFoundError:
            continue
        if package.version == __version__:
            found.append(Path(str(package.locate_file(f"polyop_cuda{cuda}"))) / "lib")
        else:
            warnings.warn(
                f"polyop-cuda{cuda} is ignored: expected version {__version__}, got {package.version}; "
                "install the wheel that `make cuda-wheel` of this version builds",
                stacklevel=4,
            )
    return tuple(found)


def require_library(name: str, runtime: str = "ONNX Runtime") -> str:
    """Returns the path of a library. Raises MissingLibraryError, a FileNotFoundError, if it does not exist."""
    library = find_library(name)
    if not library.is_file():
        from polyop.errors import INSTALL, MissingLibraryError

        advice = f"In a checkout run `make build`; otherwise {INSTALL}"
        if runtime == "OpenVINO":
            advice = f"Wheels for Linux have it. In a checkout run `make build`; otherwise {INSTALL}"
        raise MissingLibraryError(f"polyop's {runtime} library is missing: {library}. {advice}")
    return str(library)


def read_catalogue(library: ctypes.CDLL) -> list[dict[str, Any]]:
    """Returns the records of a library's operators. Raises PolyopError if the library's definitions are invalid."""
    library.polyop_catalogue.restype = ctypes.c_char_p
    records = json.loads(library.polyop_catalogue())
    if isinstance(records, dict):
        from polyop.errors import PolyopError

        raise PolyopError(f"{library._name}: {records['error']}")
    return records


def get_onnxruntime_op_path() -> str:
    """Returns the path of polyop's custom-op library, for `SessionOptions.register_custom_ops_library`.

    Raises FileNotFoundError if the library does not exist: the package was neither installed nor built, or the
    environment variable POLYOP_LIBRARY_DIR names a folder without it.
    """
    return require_library(library_file("polyop", "onnxruntime"))


def get_accelerator_path() -> str:
    """Returns the path of a library for `register_custom_ops_library` that replaces ONNX Runtime's own RoiAlign,
    GridSample, NonMaxSuppression and InstanceNormalization by polyop's kernels, for models of standard operators on the
    CPU. For ONNX Runtime 1.17 to 1.23: newer ones have `polyop.register`.

    If the session's configuration entry "polyop.opset" states the model's opset, the library also replaces versions of
    these operators whose defaults differ from the newest version's. Raises FileNotFoundError as
    `get_onnxruntime_op_path` does.
    """
    return require_library(library_file("polyop", "accelerator"))


def get_library_path() -> str:
    """Like `get_onnxruntime_op_path`, under the name that onnxruntime-extensions uses."""
    return get_onnxruntime_op_path()
