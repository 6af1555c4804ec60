"""Functions for which ONNX Runtime calls a function for each element: Tan, Sinh, Cosh, Atanh, Softplus and Mish of
float32, and the remainder of float32 and float64, Mod with `fmod = 1`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import onnx_ir as ir

from polyop.optimizing.graph import is_standard
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

NAME = "slow functions of elements"
ORDER = 85
TARGETS = (Target.ONNXRUNTIME,)
_VARIANTS = ("Tan", "Sinh", "Cosh", "Atanh", "Softplus", "Mish")
"""In the order of special_unary's elementary functions."""


def find(scope: Scope) -> Iterator[Match]:
    nodes = (n for n in scope.graph if is_standard(n, *_VARIANTS))
    yield from matches_of(nodes, lambda node: _match(scope, node))
    remainders = (n for n in scope.graph if is_standard(n, "Mod"))
    yield from matches_of(remainders, lambda node: _remainder(scope, node))


def _match(scope: Scope, node: ir.Node) -> Match | None:
    x, y = node.inputs[0], node.outputs[0]
    shape = scope.shape(x)
    types = {value.dtype for value in (x, y) if value is not None}
    if shape is None or not types <= {ir.DataType.FLOAT, None}:
        return None
    variant = _VARIANTS.index(node.op_type)

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        return b.node("polyop::SpecialUnary", inputs, {"function": "elementary", "variant": variant})

    return Match(name_of(node), [x], [y], build, float(prod(shape)))


def _remainder(scope: Scope, node: ir.Node) -> Match | None:
    shape = scope.shape(node.inputs[0])
    if shape is None or shape != scope.shape(node.inputs[1]) or node.attributes.get_int("fmod", 0) != 1:
        return None
    known = {value.dtype for value in node.inputs if value is not None} - {None}
    if len(known) != 1 or not known <= {ir.DataType.FLOAT, ir.DataType.DOUBLE}:
        return None

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        return b.node("polyop::SpecialBinary", inputs, {"function": "elementary", "variant": 3})

    return Match(name_of(node), list(node.inputs), [node.outputs[0]], build, float(prod(shape)))
