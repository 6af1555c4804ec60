# SPDX-License-Identifier: Apache-2.0
"""The patterns: each file of this folder is one, and is discovered automatically.

A pattern is a module with
  NAME      its name in the report;
  ORDER     patterns with lower numbers run first, and the first match of a node wins. Patterns of many nodes have 10 to
            50, single nodes 90;
  find      find(scope) -> Iterator[Match]: the matches in one graph, from `matches_of`, which guards each. A scope is a
            graph with the values of its tensors: `scope.shape(value)` is the shape of the tensor in a run of the model,
            `scope.same_shape(a, b)` compares those of all runs, `scope.numbers(value)` the values of small integer
            tensors, and `scope.fixed(value)` those that do not depend on the model's inputs.
  TARGETS   optional: the targets (polyop/optimizing/target.py) that it writes nodes for; by default those that run
            polyop's nodes.

A pattern may guess: every match is compared with the nodes that it replaces, on the model's own values and on others,
before the graph changes. New patterns are found by polyop's library, from files in ops/<room>/patterns: their `find`
yields what `find_pattern` (polyop/optimizing/finding.py) returns, with the nodes that replace it. A pattern must report
what it recognizes and cannot replace: such a match has `refused`. The minimum amount of work is in
polyop/optimizing/cost.py, under the pattern's name or the match's `what`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol

from polyop.optimizing.matching import Match
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target


class Pattern(Protocol):
    NAME: str
    ORDER: int

    def find(self, scope: Scope) -> Iterator[Match]: ...


def patterns_for(target: Target) -> list[Pattern]:
    if target is Target.STANDARD:
        return []
    modules = [import_module(f"{__name__}.{m.name}") for m in iter_modules(__path__) if not m.name.startswith("_")]
    found = [m for m in modules if target in getattr(m, "TARGETS", (Target.ONNXRUNTIME, Target.TENSORRT_POLYOP))]
    return sorted(found, key=lambda pattern: (pattern.ORDER, pattern.NAME))
