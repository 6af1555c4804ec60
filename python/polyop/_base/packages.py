# SPDX-License-Identifier: Apache-2.0
"""Finds packages of operators, which polyop.packages describes, and their formulas, which polyop.formulas describes."""

from __future__ import annotations

import ctypes
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from polyop._base.libraries import find_library, get_onnxruntime_op_path, library_file, library_of

_RUNTIMES = ("onnxruntime", "torch", "openvino", "tensorrt")


@dataclass(frozen=True)
class Package:
    """A package of operators, for one runtime or several."""

    name: str
    folder: Path

    def library(self, runtime: str) -> Path | None:
        """Returns the library for "onnxruntime", "torch", "openvino" or "tensorrt", or None if there is none."""
        path = self.folder / library_file(self.name, runtime)
        return path if path.is_file() else None


def packages() -> list[Package]:
    """Returns the packages that this polyop can use. Warns once about each other package."""
    return [package for package, why in found().values() if why is None]


def libraries(runtime: str) -> Iterator[tuple[Package, Path]]:
    """Yields each package that has a library for this runtime, and the library."""
    for package in packages():
        if (library := package.library(runtime)) is not None:
            yield package, library


@cache
def found() -> dict[str, tuple[Package, str | None]]:
    """Returns the packages by name, each with the reason why it is unusable, or None. The first of a name counts."""
    result: dict[str, tuple[Package, str | None]] = {}
    for package in [*_of_environment(), *_installed()]:
        if package.name in result:
            continue
        why = _refusal(package)
        if why is not None:
            warnings.warn(why, stacklevel=3)
        result[package.name] = package, why
    return result


def _of_environment() -> list[Package]:
    result = []
    for text in filter(None, os.environ.get("POLYOP_OPERATORS", "").split(os.pathsep)):
        folder = Path(text).absolute()
        found = {library_of(path.name, _RUNTIMES) for path in folder.glob("*")}
        names = sorted(name for name in found - {"polyop"} if name is not None)
        if not names:
            warnings.warn(f"POLYOP_OPERATORS: there is no library of operators in {folder}", stacklevel=4)
        result += [Package(name, folder) for name in names]
    return result


def _installed() -> list[Package]:
    points = sorted(entry_points(group="polyop.operators"), key=lambda point: point.name)
    return [
        Package(point.name, Path(str(point.dist.locate_file(point.module.replace(".", "/")))) / "lib")
        for point in points
        if point.dist is not None
    ]


def _refusal(package: Package) -> str | None:
    """Returns why the package is unusable, or None."""
    if not any(map(package.library, _RUNTIMES)):
        return f"package '{package.name}': expected libraries of operators in {package.folder}, found none: reinstall the package"
    library = package.library("onnxruntime")
    if library is None:  # the versions of other libraries are checked when they are loaded
        return None
    try:
        check_version(package.name, ctypes.CDLL(str(library)), ctypes.CDLL(get_onnxruntime_op_path()))
    except (ImportError, OSError) as error:
        return str(error)
    return None


def check_version(name: str, library: ctypes.CDLL, own: ctypes.CDLL) -> None:
    """Raises ImportError if the library was built for another version of the SDK's interface (core/library.h)."""
    got, expected = (
        handle.polyop_sdk_version() if hasattr(handle, "polyop_sdk_version") else "none" for handle in (library, own)
    )
    if got != expected:
        from polyop import __version__

        raise ImportError(
            f"the operators of '{name}' were built for version {got} of polyop's SDK, and polyop {__version__} has "
            f"version {expected}: build them again with this polyop, by `pip install .` in their project, or install the "
            "polyop that they were built with"
        )


def find_formula(operator: str, package: str = "polyop") -> ModuleType | None:
    """Returns the module of an operator's formula, or None if it has none."""
    if package == "polyop":
        if not find_library(f"formulas/{operator}_formula.py").is_file():
            return None
        return import_module(f"polyop.formulas.{operator}_formula")
    folder = next(p.folder for p in packages() if p.name == package)
    return _of_file(folder / "formulas" / f"{operator}_formula.py", f"polyop.formulas.{package}.{operator}_formula")


@cache
def _of_file(file: Path, name: str) -> ModuleType | None:
    """Loads a package's formula from its file: its name may be that of one of polyop's."""
    if not file.is_file():
        return None
    spec = spec_from_file_location(name, file)
    assert spec is not None  # the name ends in .py
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
