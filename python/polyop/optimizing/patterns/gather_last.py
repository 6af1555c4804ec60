# SPDX-License-Identifier: Apache-2.0
"""Gather along the last dimension, for which ONNX Runtime copies single elements with a call for each: GatherElements,
with the indices repeated for all rows, is 2 to 8 times as fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import onnx_ir as ir

from polyop.optimizing.graph import is_standard
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

NAME = "gather along the last dimension"
ORDER = 87
TARGETS = (Target.ONNXRUNTIME,)
_MIN_INDICES = 8
"""For fewer indices both are as fast."""
_TYPES = frozenset((ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.INT32, ir.DataType.INT64))


def find(scope: Scope) -> Iterator[Match]:
    nodes = (n for n in scope.graph if is_standard(n, "Gather"))
    yield from matches_of(nodes, lambda node: _match(scope, node))


def _match(scope: Scope, node: ir.Node) -> Match | None:
    x, index = node.inputs
    shape, indices = scope.shape(x), scope.shape(index)
    if scope.opset < 13 or shape is None or indices is None or len(shape) < 2 or len(indices) != 1:
        return None
    written = node.attributes.get("axis")
    axis = written.value if written is not None else 0
    if axis not in (-1, len(shape) - 1) or indices[0] < _MIN_INDICES or not {x.dtype, node.outputs[0].dtype} & _TYPES:
        return None

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        rows = b("Slice", b("Shape", inputs[0]), b.constant([0]), b.constant([-1]))
        repeated = b("Expand", inputs[1], b("Concat", rows, b("Shape", inputs[1]), axis=0))
        return [b("GatherElements", inputs[0], repeated, axis=-1)]

    return Match(name_of(node), [x, index], [node.outputs[0]], build, float(prod(shape[:-1]) * indices[0]))
