# SPDX-License-Identifier: Apache-2.0
"""Names under which other code finds polyop's modules: metadata of distributions, and modules of any package."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from polyop._base.after_import import after_import

__all__ = ["announce_version", "answer_in_any_package"]

_VERSIONS: dict[str, str] = {}
_ANYWHERE: dict[str, str] = {}


class _Metadata(Distribution):
    """Metadata that has a name and a version, and no files."""

    def __init__(self, name: str) -> None:
        self._name = name

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {self._name}\nVersion: {_VERSIONS[self._name]}\n"

    def locate_file(self, path: str | PathLike[str]) -> Path:
        return Path(path)


class _Alias(Loader):
    """Loads a module of polyop under another name."""

    def __init__(self, module: str) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._module)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import has replaced it


class _Finder(DistributionFinder):
    """Finds what no other finder has found: it is the last."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        module = _ANYWHERE.get(fullname.rpartition(".")[2])
        return None if module is None else ModuleSpec(fullname, _Alias(module), origin="polyop")

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
        name = None if context is None else context.name
        same = [known for known in _VERSIONS if name is None or known.lower() == name.lower()]
        return map(_Metadata, same)


def _install_finder() -> None:
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


def _tell_pkg_resources(module: Any) -> None:
    for name, version in _VERSIONS.items():
        if name.lower() not in module.working_set.by_key:
            module.working_set.add(module.Distribution(project_name=name, version=version))


def announce_version(name: str, version: str) -> None:
    """Makes importlib.metadata and pkg_resources report this version for a distribution that is not installed."""
    _VERSIONS[name] = version
    _install_finder()
    after_import({"pkg_resources": _tell_pkg_resources})
    if (module := sys.modules.get("pkg_resources")) is not None:
        _tell_pkg_resources(module)


def answer_in_any_package(name: str, module: str) -> None:
    """Makes `from . import NAME` find polyop's module in every package that has no such module."""
    _ANYWHERE[name] = module
    _install_finder()
