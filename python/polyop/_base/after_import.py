# SPDX-License-Identifier: Apache-2.0
"""Changes modules of other packages right after they are imported, before anything imports a name from them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

__all__ = ["after_import"]

Change = Callable[[ModuleType], None]

_CHANGES: dict[str, Change] = {}


def _change_of(name: str) -> Change | None:
    """Returns the change of a module. A key "*.a.b" is for the module a.b of any package, and for a.b itself."""
    parts = name.split(".")
    keys = (name, *("*." + ".".join(parts[i:]) for i in range(len(parts))))
    return next((_CHANGES[key] for key in keys if key in _CHANGES), None)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        change = _change_of(fullname)
        spec = PathFinder.find_spec(fullname, path, target) if change else None
        if change is None or spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            change(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def after_import(changes: Mapping[str, Change]) -> None:
    """Calls each change with the module of its name when that is imported. Does not change imported modules."""
    _CHANGES.update(changes)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
