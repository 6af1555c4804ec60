# SPDX-License-Identifier: Apache-2.0
"""Functions for patterns that walk through a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import onnx_ir as ir

# Operators that only move elements of their first input. Concat moves, too, but has several inputs.
MOVEMENT = frozenset(
    {"Flatten", "Gather", "GatherND", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}
)


def is_standard(node: ir.Node | None, *op_types: str) -> bool:
    """Returns True for a node of ONNX's own operators that has one of these types."""
    return node is not None and node.domain in ("", "ai.onnx") and node.op_type in op_types


def producer(value: ir.Value | None, *op_types: str) -> ir.Node | None:
    """Returns the node that produces the value if it has one of these standard types, else None."""
    node = value.producer() if value is not None else None
    return node if is_standard(node, *op_types) else None


def is_read(value: ir.Value | None) -> bool:
    """Returns True for a value that a node reads or that the graph returns."""
    return value is not None and (bool(value.uses()) or value.is_graph_output())


def constant(value: ir.Value | None) -> np.ndarray | None:
    """Returns the value of an initializer or a Constant node, or None."""
    if value is None:
        return None
    if value.is_initializer() and not value.is_graph_input():
        return value.const_value.numpy() if value.const_value is not None else None
    node = producer(value, "Constant")
    if node is None:
        return None
    (attribute,) = node.attributes.values()
    return attribute.value.numpy() if attribute.name == "value" else np.asarray(attribute.value)


def scalar(value: ir.Value | None) -> float | None:
    """Returns the value of a constant of one element, or None."""
    array = constant(value)
    return array.item() if array is not None and array.size == 1 and array.dtype.kind in "fiu" else None


def filled_with(value: ir.Value | None) -> float | None:
    """Returns the number that all elements of a tensor are equal to, or None."""
    if (array := constant(value)) is not None:
        first = array.reshape(-1)[:1]
        return float(first[0]) if first.size and array.dtype.kind in "biuf" and (array == first).all() else None
    filled = producer(value, "ConstantOfShape", "Expand", "Cast", "Identity")
    if filled is None:
        return None
    if filled.op_type == "ConstantOfShape":
        number = filled.attributes.get("value")
        return float(number.value.numpy().item()) if number is not None else 0.0
    return filled_with(filled.inputs[0])


def trail(value: ir.Value) -> list[ir.Value]:
    """Returns the value and the values that it was moved from, back to one that is computed."""
    values = [value]
    while (node := producer(values[-1], *MOVEMENT)) is not None and node.inputs[0] is not None:
        values.append(node.inputs[0])
    return values


def operands(node: ir.Node) -> tuple[ir.Value, float] | None:
    """Returns the value and the constant number of a node with two inputs, in either order, or None."""
    for value, other in (node.inputs, reversed(node.inputs)):
        if (number := scalar(other)) is not None and value is not None:
            return value, number
    return None


def outer_values(node: ir.Node) -> Iterator[ir.Value]:
    """Yields the values that a node reads, including those that its subgraphs read from outside."""
    yield from (value for value in node.inputs if value is not None)
    for attribute in node.attributes.values():
        for graph in subgraphs_of(attribute):
            inside = set(graph.inputs) | set(graph.initializers.values())
            inside |= {output for inner in graph for output in inner.outputs}
            for inner in graph:
                yield from (value for value in outer_values(inner) if value not in inside)
            yield from (value for value in graph.outputs if value not in inside)


def subgraphs_of(attribute: ir.Attr) -> Iterable[ir.Graph]:
    if attribute.is_ref():
        return ()
    if attribute.type == ir.AttributeType.GRAPH:
        return (attribute.value,)
    return attribute.value if attribute.type == ir.AttributeType.GRAPHS else ()


def cone(
    outputs: Iterable[ir.Value], inputs: Iterable[ir.Value], max_nodes: int = 1000
) -> tuple[list[ir.Node], list[ir.Value]]:
    """Returns the nodes between inputs and outputs, unordered, and the other values that they read: constants, and
    sizes of tensors that are not computed from the inputs alone.

    Raises ValueError if there are more than `max_nodes`: the inputs do not separate the outputs from the graph.
    """
    nodes: dict[ir.Node, None] = {}
    read: dict[ir.Value, None] = {}
    ends, open_ = set(inputs), list(outputs)
    while open_:
        value = open_.pop()
        node = value.producer()
        if value in ends or node in nodes:
            continue
        if (
            node is None
            or node.graph is not _graph_of(outputs)
            or (_is_size(node) and not _depends_only_on(node, ends, max_nodes))
        ):
            read[value] = None
            continue
        nodes[node] = None
        if len(nodes) > max_nodes:
            raise ValueError("its nodes read more than its inputs")
        open_ += outer_values(node)
    return list(nodes), list(read)


def cone_of(outputs: Iterable[ir.Value], inputs: Iterable[ir.Value]) -> list[ir.Node] | None:
    """Returns the nodes between inputs and outputs, or None if the outputs depend on more than inputs, constants and
    sizes."""
    try:
        nodes, read = cone(outputs, inputs)
    except ValueError:
        return None
    if any(constant(v) is None and not _is_size(v.producer()) for v in read):
        return None
    return nodes


def _is_size(node: ir.Node | None) -> bool:
    return is_standard(node, "Shape", "Size")


def _depends_only_on(size: ir.Node, ends: set[ir.Value], max_nodes: int) -> bool:
    """Returns True if the tensor is computed from `ends` and constants alone; then its size may depend on their
    values."""
    open_: list[ir.Value] = [v for v in size.inputs if v is not None]
    seen: set[ir.Value] = set()
    while open_:
        value = open_.pop()
        node = value.producer()
        if value in ends or value in seen or constant(value) is not None or (node is not None and _is_size(node)):
            continue
        seen.add(value)
        if node is None or len(seen) > max_nodes:
            return False
        open_ += outer_values(node)
    return True


def _graph_of(values: Iterable[ir.Value]) -> ir.Graph | None:
    return next(iter(values)).graph
