"""Functions on models of ONNX."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx


def opset_of(model: onnx.ModelProto) -> int:
    """Returns the model's version of ONNX's own operators."""
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)


def nodes_of(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yields the nodes of the graph, of its subgraphs and of the model's functions."""

    def walk(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
        for node in nodes:
            yield node
            for attribute in node.attribute:
                yield from walk(attribute.g.node)
                for graph in attribute.graphs:
                    yield from walk(graph.node)

    yield from walk(model.graph.node)
    for function in model.functions:
        yield from walk(function.node)
