"""Operators of others: packages that were built with polyop's SDK, found by their entry points.

A package `my_ops` has an entry point of that name in the group `polyop.operators`, whose value is the module that the
libraries lie in, under lib/:

[project.entry-points."polyop.operators"]
my_ops = "my_ops"

    my_ops/lib/libmy_ops_onnxruntime.so, libmy_ops_torch.so, libmy_ops_openvino.so, libmy_ops_tensorrt.so: those that were built
    my_ops/lib/formulas/                 the operators' formulas

The folder is looked for beside the package's metadata, and nothing of the package is imported. The program `polyop` reads
the same entry points. POLYOP_OPERATORS names folders of further libraries, a build tree's say, separated by colons.
"""

from __future__ import annotations

import ctypes
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import polyop

if TYPE_CHECKING:
    import onnxruntime

__all__ = ["Package", "libraries", "load", "packages", "register_all"]

_RUNTIMES = ("onnxruntime", "torch", "openvino", "tensorrt")


@dataclass(frozen=True)
class Package:
    """A library of operators, for one runtime or several."""

    name: str
    folder: Path

    def library(self, runtime: str) -> Path | None:
        """The file for "onnxruntime", "torch", "openvino" or "tensorrt"; None if there is none."""
        path = self.folder / f"lib{self.name}_{runtime}.so"
        return path if path.is_file() else None


def packages() -> list[Package]:
    """Those that this polyop can use. Of others a warning says what is wrong, once."""
    return [package for package, why in _found().values() if why is None]


def libraries(runtime: str) -> Iterator[tuple[Package, Path]]:
    """Of the packages that have one for this runtime."""
    for package in packages():
        if (library := package.library(runtime)) is not None:
            yield package, library


def load(name: str) -> Package:
    """Registers a package's operators with PyTorch, where that is installed: torch.ops.my_ops.* for `my_ops`. The package
    itself calls this. Returns it. Raises ImportError if the package cannot be used."""
    if name not in _found():
        raise ImportError(
            f"the package '{name}' is not among those that polyop finds by their entry points ({', '.join(_found()) or 'none'}): "
            "install it again, or name its folder of libraries in POLYOP_OPERATORS"
        )
    package, why = _found()[name]
    if why is not None:
        raise ImportError(why)
    if package.library("torch") is not None and find_spec("torch") is not None:
        import_module("polyop.functional")  # loads all packages
    return package


def register_all(options: onnxruntime.SessionOptions) -> None:
    """Registers polyop's library for ONNX Runtime and every package's."""
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    for package, library in libraries("onnxruntime"):
        try:
            options.register_custom_ops_library(str(library))
        except Exception as error:  # ONNX Runtime's own types are not public
            warnings.warn(f"the operators of '{package.name}' are left out: {error}", stacklevel=2)


@cache
def _found() -> dict[str, tuple[Package, str | None]]:
    """By name, each with the reason why it cannot be used; the first of a name counts."""
    found: dict[str, tuple[Package, str | None]] = {}
    for package in [*_of_environment(), *_installed()]:
        if package.name in found:
            continue
        why = _refusal(package)
        if why is not None:
            warnings.warn(why, stacklevel=3)
        found[package.name] = package, why
    return found


def _of_environment() -> list[Package]:
    made = []
    for text in filter(None, os.environ.get("POLYOP_OPERATORS", "").split(os.pathsep)):
        folder = Path(text).absolute()
        files = (re.fullmatch(rf"lib(\w+)_(?:{'|'.join(_RUNTIMES)})\.so", path.name) for path in folder.glob("lib*.so"))
        names = sorted({match[1] for match in files if match} - {"polyop"})
        if not names:
            warnings.warn(f"POLYOP_OPERATORS: there is no library of operators in {folder}", stacklevel=4)
        made += [Package(name, folder) for name in names]
    return made


def _installed() -> list[Package]:
    points = sorted(entry_points(group="polyop.operators"), key=lambda point: point.name)
    return [
        Package(point.name, Path(str(point.dist.locate_file(point.module.replace(".", "/")))) / "lib")
        for point in points
        if point.dist is not None
    ]


def _refusal(package: Package) -> str | None:
    """Why the package cannot be used, or None."""
    if not any(map(package.library, _RUNTIMES)):
        return f"the package '{package.name}' has no library of operators in {package.folder}: install it again"
    library = package.library("onnxruntime")
    if library is None:  # others load where their runtime is: they are asked then
        return None
    try:
        check_version(package.name, ctypes.CDLL(str(library)), ctypes.CDLL(polyop.get_onnxruntime_op_path()))
    except (ImportError, OSError) as error:
        return str(error)
    return None


def check_version(name: str, library: ctypes.CDLL, own: ctypes.CDLL) -> None:
    """Raises ImportError if the library was built for another interface than polyop's own (core/library.h)."""
    theirs, ours = (
        handle.polyop_sdk_version() if hasattr(handle, "polyop_sdk_version") else "none" for handle in (library, own)
    )
    if theirs != ours:
        raise ImportError(
            f"the operators of '{name}' were built for version {theirs} of polyop's SDK, and polyop {polyop.__version__} has "
            f"version {ours}: build them again with this polyop, by `pip install .` in their project, or install the polyop "
            "that they were built with"
        )
