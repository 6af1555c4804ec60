# SPDX-License-Identifier: Apache-2.0
"""Standard nodes that a runtime lacks or computes wrong, as other standard nodes: gathers, products, comparisons.

Each file of this folder is discovered automatically. It has
  OPERATORS  the operators that it rewrites;
  rewrite    rewrite(scope, node, without) returns what builds the node's first output from its inputs (those that are
             present, without repetitions), or raises RefusedError with the reason. `without` has the operators that the
             result must not contain.

Results are compared as those of every pattern (polyop/optimizing/checking.py), within 1e-5 for float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import onnx_ir as ir

from polyop.optimizing.graph import is_standard
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.patterns.standard_nodes import FEEDS
from polyop.optimizing.runtimes import Entry
from polyop.optimizing.scope import Scope

Build = Callable[[Builder, list[ir.Value]], list[ir.Value]]
Without = frozenset[str]

_WIDE = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
TOLERANCE = 1e-5  # of float32, relative to the scale of each element


@cache
def modules() -> Mapping[str, ModuleType]:
    """Returns the module of each operator that can be rewritten."""
    found = [import_module(f"{__name__}.{m.name}") for m in iter_modules(__path__) if not m.name.startswith("_")]
    return {operator: module for module in found for operator in module.OPERATORS}


class Rewriter:
    """A pattern (polyop/optimizing/patterns) that finds the nodes of a list."""

    NAME = "rewriting nodes"
    ORDER = 99

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.entries = entries

    def find(self, scope: Scope) -> Iterator[Match]:
        return matches_of([n for n in scope.graph if applies(self.entries, n)], lambda node: self._match(scope, node))

    def _match(self, scope: Scope, node: ir.Node) -> Match:
        from polyop.optimizing.rewrites._maker import MIN_OPSET, RefusedError

        inputs = list(dict.fromkeys(v for v in node.inputs if v is not None))
        refused, build = "", None
        try:
            if scope.opset < MIN_OPSET:
                raise RefusedError(f"expected opset {MIN_OPSET} or newer, got {scope.opset}")
            if any(v.uses() or v.is_graph_output() for v in node.outputs[1:]):
                raise RefusedError("expected one output")
            if (module := modules().get(node.op_type)) is None:
                raise RefusedError(f"polyop has no other nodes for it; it has for {', '.join(sorted(modules()))}")
            build = module.rewrite(scope, node, frozenset(self.entries))
        except RefusedError as error:
            refused = str(error)
        return Match(
            name_of(node), inputs, list(node.outputs[:1]), build or (lambda b, i: []), 1, refused, what=node.op_type,
            min_work=0, feeds=FEEDS.get(node.op_type),
            tolerance=TOLERANCE if node.outputs[0].dtype in _WIDE else None,
        )  # fmt: skip


def applies(entries: Mapping[str, Entry], node: ir.Node) -> bool:
    entry = entries.get(node.op_type)
    return entry is not None and is_standard(node, entry.operator) and entry.applies(node)


def remaining(entries: Mapping[str, Entry], model: ir.Model) -> list[ir.Node]:
    """Returns the nodes of a list that a model has, in subgraphs and functions, too."""
    graphs: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    return [n for g in graphs for n in ir.traversal.RecursiveGraphIterator(g) if applies(entries, n)]
