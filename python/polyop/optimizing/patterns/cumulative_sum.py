# SPDX-License-Identifier: Apache-2.0
"""CumSum along the last dimension, which ONNX Runtime computes an element at a time on one thread. Along others it adds
slices.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import onnx_ir as ir

from polyop.optimizing.graph import is_standard
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

NAME = "cumulative sum"
ORDER = 88
TARGETS = (Target.ONNXRUNTIME,)
_SUMMED = frozenset((ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64))


def find(scope: Scope) -> Iterator[Match]:
    yield from matches_of((n for n in scope.graph if is_standard(n, "CumSum")), lambda node: _match(scope, node))


def _match(scope: Scope, node: ir.Node) -> Match | None:
    x, shape, axis = node.inputs[0], scope.shape(node.inputs[0]), scope.fixed(node.inputs[1])
    if not shape or axis is None or axis.item() not in (-1, len(shape) - 1) or x.dtype not in _SUMMED:
        return None
    attributes = {"axis": -1}
    attributes |= {name: node.attributes.get_int(name, 0) for name in ("exclusive", "reverse")}

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        return b.node("polyop::CumSum", inputs, attributes)

    return Match(name_of(node), [x], [node.outputs[0]], build, float(prod(shape)))
