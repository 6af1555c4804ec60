# SPDX-License-Identifier: Apache-2.0
"""Functions for which ONNX Runtime calls a function for each element: Softplus and Mish of float32, and the remainder
of float32 and float64, Mod with `fmod = 1`. Also the logarithm of x / (1 - x), as in `torch.logit`. Tan and others, for
which polyop has nodes of the same names, are in standard_nodes.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import onnx_ir as ir

from polyop.optimizing.graph import is_standard, producer
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

NAME = "slow functions of elements"
ORDER = 85
TARGETS = (Target.ONNXRUNTIME,)
_VARIANTS = {"Softplus": 4, "Mish": 5}
_LOGIT = 7
"""Numbers of special_unary's elementary functions."""


def find(scope: Scope) -> Iterator[Match]:
    nodes = (n for n in scope.graph if is_standard(n, *_VARIANTS))
    yield from matches_of(nodes, lambda node: _match(scope, node))
    remainders = (n for n in scope.graph if is_standard(n, "Mod"))
    yield from matches_of(remainders, lambda node: _remainder(scope, node))
    logarithms = (n for n in scope.graph if is_standard(n, "Log"))
    yield from matches_of(logarithms, lambda node: _logit(scope, node))


def _match(scope: Scope, node: ir.Node) -> Match | None:
    x, y = node.inputs[0], node.outputs[0]
    shape = scope.shape(x)
    types = {value.dtype for value in (x, y) if value is not None}
    if shape is None or not types <= {ir.DataType.FLOAT, None}:
        return None
    return Match(name_of(node), [x], [y], _unary(_VARIANTS[node.op_type]), float(prod(shape)))


def _unary(variant: int) -> Callable[[Builder, list[ir.Value]], list[ir.Value]]:
    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        return b.node("polyop::SpecialUnary", inputs, {"function": "elementary", "variant": variant})

    return build


def _logit(scope: Scope, node: ir.Node) -> Match | None:
    quotient = producer(node.inputs[0], "Div")
    rest = producer(quotient.inputs[1], "Sub") if quotient is not None else None
    if quotient is None or rest is None or quotient.inputs[0] is not rest.inputs[1]:
        return None
    x, one = quotient.inputs[0], scope.fixed(rest.inputs[0])
    shape = scope.shape(x)
    if shape is None or one is None or one.size != 1 or one.item() != 1 or len(one.shape) > len(shape):
        return None
    if x is None or {value.dtype for value in (x, node.outputs[0]) if value is not None} - {ir.DataType.FLOAT, None}:
        return None
    return Match(name_of(node), [x], [node.outputs[0]], _unary(_LOGIT), float(prod(shape)))


def _remainder(scope: Scope, node: ir.Node) -> Match | None:
    shape = scope.shape(node.inputs[0])
    if shape is None or not scope.same_shape(*node.inputs) or node.attributes.get_int("fmod", 0) != 1:
        return None
    known = {value.dtype for value in node.inputs if value is not None} - {None}
    if len(known) != 1 or not known <= {ir.DataType.FLOAT, ir.DataType.DOUBLE}:
        return None

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        return b.node("polyop::SpecialBinary", inputs, {"function": "elementary", "variant": 3})

    return Match(name_of(node), list(node.inputs), [node.outputs[0]], build, float(prod(shape)))
