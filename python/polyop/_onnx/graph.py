# SPDX-License-Identifier: Apache-2.0
"""Functions on models of ONNX."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx


def opset_of(model: onnx.ModelProto) -> int:
    """Returns the model's version of ONNX's own operators."""
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)


def nodes_of(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yields the nodes of the graph, of its subgraphs and of the model's functions."""

    yield from nodes_in(model.graph.node)
    for function in model.functions:
        yield from nodes_in(function.node)


def nodes_in(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yields these nodes and those of their subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            yield from nodes_in(attribute.g.node)
            for graph in attribute.graphs:
                yield from nodes_in(graph.node)


def subgraphs_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [graph for a in node.attribute for graph in ([a.g] if a.HasField("g") else a.graphs)]


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yields the graph and its subgraphs."""
    yield graph
    for node in graph.node:
        for inner in subgraphs_of(node):
            yield from graphs_of(inner)
