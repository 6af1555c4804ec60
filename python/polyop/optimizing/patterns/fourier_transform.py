# SPDX-License-Identifier: Apache-2.0
"""ONNX's DFT of one axis: ONNX Runtime's kernel is slow, and inexact for lengths that are no power of two.

polyop's node transforms the last dimension before the parts; other axes are moved there.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import onnx_ir as ir

from polyop.optimizing.graph import constant, is_standard
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope

NAME = "Fourier transform"
ORDER = 90
_LONGEST_EXACT = 100
"""ONNX Runtime's transforms of longer lines, whose length is no power of two, are inexact."""
_MOST_PRODUCTS = 1 << 34
"""Of the reference kernel, with which such transforms are compared."""


def find(scope: Scope) -> Iterator[Match]:
    yield from matches_of((n for n in scope.graph if is_standard(n, "DFT")), lambda node: _match(scope, node))


def _match(scope: Scope, node: ir.Node) -> Match:
    x, output = node.inputs[0], node.outputs[0]
    shape = scope.shape(x)
    inverse, onesided = (node.attributes.get_int(name, 0) for name in ("inverse", "onesided"))
    axis = _axis(node, scope.opset, len(shape)) if shape else None
    refused = ""
    if not shape or axis is None:
        refused = "expected a known rank and a constant axis"
    elif inverse and onesided:
        refused = "polyop has no one-sided inverse transform of a whole spectrum"
    elif not _is_whole(node, scope, shape[axis]):
        refused = "the length of the transform differs from that of the input"
    is_inexact = not refused and shape[axis] > _LONGEST_EXACT and shape[axis] & (shape[axis] - 1) != 0
    if is_inexact and prod(shape[:-1]) * shape[axis] > _MOST_PRODUCTS:
        refused = "it is too long to be compared with the reference"
    last = len(shape) - 2 if shape else 0

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        order = [*range(last + 2)]
        if axis is not None and axis != last:
            order[axis], order[last] = last, axis
        moved = order != [*range(last + 2)]
        given = b("Transpose", inputs[0], perm=order) if moved else inputs[0]
        result = b("polyop::DFT", given, dimensions=1, inverse=inverse, onesided=onesided)
        return [b("Transpose", result, perm=order) if moved else result]

    return Match(name_of(node), [x], [output], build, float(prod(shape or (0,))), refused, is_fix=is_inexact)


def _axis(node: ir.Node, opset: int, rank: int) -> int | None:
    """Returns the transformed axis, which is no part of a complex number; None if it is not known."""
    if opset >= 20:
        given = node.inputs[2] if len(node.inputs) > 2 else None
        array = constant(given)
        if given is not None and array is None:
            return None
        axis = -2 if array is None else int(array)
    else:
        axis = node.attributes.get_int("axis", 1)
    axis = axis % rank if -rank <= axis < rank else rank
    return axis if axis < rank - 1 else None


def _is_whole(node: ir.Node, scope: Scope, length: int) -> bool:
    given = node.inputs[1] if len(node.inputs) > 1 else None
    if given is None:
        return True
    numbers = scope.fixed(given)
    return numbers is not None and int(numbers) == length and length > 0
