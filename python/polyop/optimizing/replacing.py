# SPDX-License-Identifier: Apache-2.0
"""Replaces matches by polyop's nodes."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from polyop.optimizing.matching import Builder, Match
from polyop.optimizing.scope import Scope


def replace(match: Match, scope: Scope, now: dict[ir.Value, ir.Value]) -> bool:
    """Replaces a match. Returns False if another replacement already contains one of its outputs.

    now: maps replaced values to their replacements; updated. Unused nodes stay in the graph until `clean`.
    """
    if any(v in now for v in match.outputs):
        return False
    builder = Builder(scope.opset)
    result = match.build(builder, [now.get(v, v) for v in match.inputs])
    name = match.outputs[0].name
    for i, node in enumerate(builder.nodes):
        node.name = f"{name}/polyop_{i}"
        for j, value in enumerate(node.outputs):
            value.name = f"{name}/polyop_{i}_{j}"
    scope.graph.insert_before(match.outputs[0].producer(), builder.nodes)
    for old, new in zip(match.outputs, result, strict=True):
        new.shape, new.type = old.shape, old.type
        new.name, old.name = old.name, f"{old.name}/replaced"
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        now[old] = new
    scope.graph.sort()
    for node in builder.nodes:
        scope.model.opset_imports.setdefault(node.domain, 1)
    return True


def clean(model: ir.Model) -> None:
    """Removes unused nodes and initializers: a pass may leave a node whose reader it has removed."""
    while RemoveUnusedNodesPass()(model).modified:
        pass
