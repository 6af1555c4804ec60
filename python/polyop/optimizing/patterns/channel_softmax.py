# SPDX-License-Identifier: Apache-2.0
"""Softmax and its logarithm along a dimension that at least two others follow, such as the channels of a segmentation
or the bins of YOLO's distances.

ONNX Runtime exchanges the dimension with the last one before and after: fast if it is the last but one. The replacement
needs opset 13: before it, Softmax flattens the dimensions from its axis on.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import onnx_ir as ir

from polyop.optimizing.graph import is_standard
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

NAME = "softmax over channels"
ORDER = 80
TARGETS = (Target.ONNXRUNTIME,)
_MIN_INNER = 8
"""The least number of elements after the dimension: fewer do not fill a vector."""


def find(scope: Scope) -> Iterator[Match]:
    nodes = (n for n in scope.graph if is_standard(n, "Softmax", "LogSoftmax"))
    yield from matches_of(nodes, lambda node: _match(scope, node))


def _match(scope: Scope, node: ir.Node) -> Match | None:
    x = node.inputs[0]
    shape = scope.shape(x)
    written = node.attributes.get("axis")
    axis = written.value if written is not None else -1
    if scope.opset < 13 or shape is None or not -len(shape) <= axis < len(shape):
        return None
    axis %= len(shape)
    if prod(shape[axis + 1 :]) < _MIN_INNER or sum(size > 1 for size in shape[axis + 1 :]) < 2:
        return None

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        return b.node(f"polyop::{node.op_type}", inputs, {"axis": axis})

    return Match(name_of(node), [x], [node.outputs[0]], build, float(prod(shape)))
