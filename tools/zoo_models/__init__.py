# SPDX-License-Identifier: Apache-2.0
"""The models of tools/zoo.py, by subject. Each module has functions that build models with random weights.

    @model("timm", batch=(2, 3, 1))
    def resnet():
        return timm.create_model("resnet10t", pretrained=False), lambda batch: torch.rand(batch, 3, 64, 64)

A function imports its package. It returns a module, and a function that returns its inputs at sizes: a tensor or a
tuple. The sizes of the decorator are dynamic: the example's, and two others. Models are as small as their package
allows.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Built = tuple[Any, Callable[..., Any]]


@dataclass(frozen=True)
class Entry:
    package: str
    name: str
    build: Callable[[], Built]
    sizes: dict[str, tuple[int, int, int]]

    def at(self, index: int) -> dict[str, int]:
        return {name: of[index] for name, of in self.sizes.items()}


_entries: list[Entry] = []


def add(package: str, name: str, build: Callable[[], Built], **sizes: tuple[int, int, int]) -> None:
    _entries.append(Entry(package, name, build, sizes))


def model(package: str, name: str = "", **sizes: tuple[int, int, int]) -> Callable[[Any], Any]:
    def decorate(build: Callable[[], Built]) -> Callable[[], Built]:
        add(package, name or build.__name__, build, **sizes)
        return build

    return decorate


def entries() -> Iterator[Entry]:
    """Yields all models."""
    for module in sorted(found.name for found in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")
    yield from _entries
