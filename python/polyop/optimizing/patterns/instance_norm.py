# SPDX-License-Identifier: Apache-2.0
"""Instance normalization (Ulyanov et al., 2016) in standard operators:

    centred = x - mean(x, over all dimensions after the channels)
    y = centred / sqrt(mean(centred * centred) + epsilon) * scale + shift

with any of *, /, rsqrt and pow. Scale and shift are optional, and have a value per channel. The same nodes are layer
normalization (Ba et al., 2016) if the scale or the shift has a value per normalized element, as with mean over the last
dimension of [N, length, features]: that is reported, but not replaced.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import constant, is_standard, operands, producer, scalar, trail
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope

NAME = "instance normalisation"
ORDER = 40
NODE = "polyop::InstanceNormalization"
LAYER = "layer normalisation"


def find(scope: Scope) -> Iterator[Match]:
    yield from matches_of((n for n in scope.graph if is_standard(n, "Sqrt")), lambda node: _match(scope, node))


def _match(scope: Scope, root: ir.Node) -> Match | None:
    """root: the Sqrt of variance + epsilon."""
    variance = operands(added) if (added := producer(root.inputs[0], "Add")) is not None else None
    x, axes = (_varies(scope, variance[0]) if variance is not None else None) or (None, [])
    output = _normalized(root.outputs[0]) if x is not None else None
    if output is None:
        return None
    shape = scope.shape(x)
    if shape is None or not scope.same_shape(output, x):
        return None
    if _is_by_element(output, axes, len(shape)):
        return Match(
            name_of(root),
            [x],
            [output],
            lambda builder, inputs: [],
            0,
            what=LAYER,
            refused="polyop has no kernel for it",
        )
    if len(shape) < 3 or axes != list(range(2, len(shape))):
        return None
    channels = shape[1]
    factors: dict[str, np.ndarray] = {}
    for op_type in ("Mul", "Add"):
        factor, after = _by_channel(output, op_type, len(shape), channels)
        if factor is not None:
            factors[op_type], output = factor, after

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        neutral = {"Mul": np.ones(channels), "Add": np.zeros(channels)}
        given = [b.constant(factors.get(t, neutral[t]), x.dtype.numpy() if x.dtype else np.float32) for t in neutral]
        return b.node(NODE, [*inputs, *given], {"epsilon": float(variance[1])})

    return Match(name_of(root), [x], [output], build, float(np.prod(shape)))


def _varies(scope: Scope, variance: ir.Value) -> tuple[ir.Value, list[int]] | None:
    """Returns x of mean((x - mean(x))^2) and the axes of both means, or None. The square is a product or a power."""
    mean = producer(trail(variance)[-1], "ReduceMean")
    square = producer(mean.inputs[0], "Mul", "Pow") if mean is not None else None
    if square is None:
        return None
    if square.inputs[0] is not square.inputs[1] and not (square.op_type == "Pow" and scalar(square.inputs[1]) == 2):
        return None
    centred = producer(square.inputs[0], "Sub")
    inner = producer(centred.inputs[1], "ReduceMean") if centred is not None else None
    if inner is None or inner.inputs[0] is not centred.inputs[0]:
        return None
    x = centred.inputs[0]
    rank = len(scope.shape(x) or ())
    axes = _axes(mean, rank)
    return (x, axes) if axes and _axes(inner, rank) == axes else None


def _axes(mean: ir.Node, rank: int) -> list[int] | None:
    written = mean.attributes.get("axes")
    axes = written.value if written is not None else constant(mean.inputs[1]) if len(mean.inputs) > 1 else None
    return None if axes is None else sorted(int(axis) % max(rank, 1) for axis in axes)


def _normalized(root: ir.Value) -> ir.Value | None:
    """Returns centred / root or centred * (1 / root), or None."""
    for node, i in root.uses():
        if is_standard(node, "Reciprocal") or (is_standard(node, "Div") and i == 1 and scalar(node.inputs[0]) == 1):
            product = next((user for user, _ in node.outputs[0].uses() if is_standard(user, "Mul")), None)
            return product.outputs[0] if product is not None else None
        if is_standard(node, "Div") and i == 1:
            return node.outputs[0]
    return None


def _is_by_element(value: ir.Value, axes: list[int], rank: int) -> bool:
    """Returns True if the only reader scales or shifts the value by constants that vary along `axes`, the last ones."""
    readers = list(value.uses())
    if len(readers) != 1 or not is_standard(readers[0][0], "Mul", "Add") or axes != list(range(axes[0], rank)):
        return False
    node, i = readers[0]
    array = constant(node.inputs[1 - i])
    return array is not None and any(extent > 1 for extent in array.shape[-len(axes) :])


def _by_channel(value: ir.Value, op_type: str, rank: int, channels: int) -> tuple[np.ndarray | None, ir.Value]:
    """Returns the constant per channel that the value's only reader multiplies or adds, or None, and the result."""
    readers = list(value.uses())
    if len(readers) != 1 or not is_standard(readers[0][0], op_type) or value.is_graph_output():
        return None, value
    node, i = readers[0]
    array = constant(node.inputs[1 - i])
    if array is None:
        return None, value
    extents = (1,) * (rank - array.ndim) + array.shape
    if array.size not in (1, channels) or extents[1] != array.size:
        return None, value
    return np.broadcast_to(array.reshape(-1), (channels,)).copy(), node.outputs[0]
