"""Puts polyop's nodes in the place of matches."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from polyop.optimizing.graph import cone
from polyop.optimizing.matching import Builder, Match
from polyop.optimizing.scope import Scope


def replace(match: Match, scope: Scope) -> bool:
    """False if another match has taken one of its nodes. What is no longer read stays until `clean`."""
    if any(v.producer() is None or v.graph is not scope.graph for v in match.outputs):
        return False
    nodes, _ = cone(match.outputs, match.inputs)
    builder = Builder(scope.opset)
    made = match.build(builder, match.inputs)
    name = match.outputs[0].name
    for i, node in enumerate(builder.nodes):
        node.name = f"{name}/polyop_{i}"
        for j, value in enumerate(node.outputs):
            value.name = f"{name}/polyop_{i}_{j}"
    for old, new in zip(match.outputs, made, strict=True):
        new.shape, new.type = old.shape, old.type
        new.name, old.name = old.name, f"{old.name}/replaced"
        old.replace_all_uses_with(new, replace_graph_outputs=True)
    first = next(node for node in scope.graph if node in set(nodes))
    scope.graph.insert_before(first, builder.nodes)
    scope.graph.sort()
    for node in builder.nodes:
        scope.model.opset_imports.setdefault(node.domain, 1)
    return True


def clean(model: ir.Model) -> None:
    """Removes what nothing reads any more."""
    RemoveUnusedNodesPass()(model)
