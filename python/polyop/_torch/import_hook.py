# SPDX-License-Identifier: Apache-2.0
"""Registers polyop's operators with PyTorch's ONNX exporters when torch.onnx is first imported.

The exporters take a second to import, and most programs export nothing.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_EXPORTERS = "torch.onnx"


class _Loader(importlib.abc.Loader):
    """Runs the module's own loader, then registers the operators."""

    def __init__(self, own: importlib.abc.Loader) -> None:
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__.loader = module.__loader__ = self._own
        self._own.exec_module(module)
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
        # Operators that do not load raise their error where they are used, and not where a program imports torch.onnx.
        with suppress(ImportError, OSError):
            importlib.import_module("polyop._torch.onnx_operators")


class _Finder(importlib.abc.MetaPathFinder):
    """Finds torch.onnx with a loader that registers the operators.

    A program may look for a module without importing it, so the finder stays until the module is imported.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == _EXPORTERS else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def tell_exporters() -> None:
    """Registers the operators with the exporters: now if they are imported, else when they are."""
    if _EXPORTERS in sys.modules:
        importlib.import_module("polyop._torch.onnx_operators")
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
