"""The patterns: each file of this folder is one, and is found by itself.

A pattern is a module with
  NAME      what it finds, in the report's words;
  ORDER     patterns of lower numbers go first: of several that claim a node the first has it. Operations of many nodes
            are 10 to 50, single nodes 90;
  find      find(scope) -> Iterator[Match]: the places in one graph. A scope is a graph and what is known of its tensors:
            `scope.shape(value)` is the shape that the tensor had when the model ran, `scope.numbers(value)` the values
            of small integer tensors, `scope.fixed(value)` the same if they can never be others.

A pattern may guess: every match is compared with the nodes that it replaces, on the model's own values and on others,
before anything changes. It shall not be quiet about what it recognises and cannot replace: such a match has `refused`.
The least work that pays is in polyop/optimizing/cost.py, under the pattern's name or the match's `what`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol

from polyop.optimizing.matching import Match
from polyop.optimizing.scope import Scope


class Pattern(Protocol):
    NAME: str
    ORDER: int

    def find(self, scope: Scope) -> Iterator[Match]: ...


def all_patterns() -> list[Pattern]:
    modules = [import_module(f"{__name__}.{m.name}") for m in iter_modules(__path__) if not m.name.startswith("_")]
    return sorted(modules, key=lambda pattern: (pattern.ORDER, pattern.NAME))
