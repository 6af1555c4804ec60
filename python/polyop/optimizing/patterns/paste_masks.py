# SPDX-License-Identifier: Apache-2.0
"""Masks that a loop pastes into images, as ops/resize/patterns/paste_masks.cc finds it. Two products by ONNX's own
MatMul replace it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from polyop.optimizing.finding import Found, find_pattern
from polyop.optimizing.graph import cone_of
from polyop.optimizing.matching import Builder, Match
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

NAME = "mask pasting"
ORDER = 30
TARGETS = tuple(Target)
_DRAWN = 6


def find(scope: Scope) -> Iterator[Match]:
    for found in find_pattern(scope, NAME):
        if found.refused or cone_of(found.outputs, found.inputs) is not None:
            yield _match(found)


def _match(found: Found) -> Match:
    shape = [0, found.parameters.get("height"), found.parameters.get("width")]

    def build(b: Builder, given: list[ir.Value]) -> list[ir.Value]:
        masks, boxes, *more = given
        size = b("Shape", more[0]) if more else b.constant(shape)
        x1, y1, x2, y2 = b.node("Split", [boxes, b.constant([1, 1, 1, 1])], {"axis": 1}, outputs=4)
        weights = [
            _weights(
                b, begin, end, b("Shape", masks, start=axis + 2, end=axis + 3), _at(b, size, axis + 1),
                bool(found.parameters["keeps_single"]),
            )
            for axis, begin, end in ((0, y1, y2), (1, x1, x2))
        ]  # fmt: skip
        rows, columns = weights[0], b("Transpose", weights[1], perm=[0, 2, 1])
        small = b("Squeeze", masks, b.constant([1]))
        return [b("MatMul", b("MatMul", rows, small), columns)]

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        masks, boxes, *more = arrays
        extents = np.array(more[0].shape[:0:-1] if more else shape[:0:-1])
        begin = rng.integers(-3, extents, (_DRAWN, 2))
        end = np.maximum(begin, np.minimum(begin + rng.integers(0, extents, (_DRAWN, 2)), extents + 2))
        drawn = np.concatenate([begin, np.maximum(end, 0)], 1).astype(boxes.dtype)
        return [rng.random((_DRAWN, *masks.shape[1:])).astype(masks.dtype), drawn, *more]

    return found.match(build, feeds)


def _at(b: Builder, size: ir.Value, axis: int) -> ir.Value:
    return b("Gather", size, b.constant([axis]), axis=0)


def _weights(
    b: Builder, begin: ir.Value, end: ir.Value, count: ir.Value, extent: ir.Value, keeps_single: bool
) -> ir.Value:
    """Returns weights [masks, extent, count] of the rows (or columns) of a mask for those of the image.

    begin, end: [masks, 1], the first and the last row of the image that a mask covers.
    keeps_single: a mask that covers one row shows its middle, not its first row.
    """
    zero, one = b.constant(0), b.constant(1)
    float_ = ir.DataType.FLOAT.value
    position = b("Sub", b("Range", zero, b("Squeeze", extent), one), begin)
    length = b("Max", b("Add", b("Sub", end, begin), one), one)
    many, last = b("Cast", count, to=float_), b("Cast", b("Sub", count, one), to=float_)
    scale = b("Div", many, b("Cast", length, to=float_))
    half, nothing = b.constant(0.5, np.float32), b.constant(0, np.float32)
    at = b("Sub", b("Mul", b("Add", b("Cast", position, to=float_), half), scale), half)
    if not keeps_single:
        at = b("Where", b("Greater", length, one), at, nothing)
    at = b("Min", b("Max", at, nothing), last)
    each = b("Cast", b("Range", zero, b("Squeeze", count), one), to=float_)
    away = b("Abs", b("Sub", b("Unsqueeze", at, b.constant([2])), each))
    near = b("Relu", b("Sub", b.constant(1, np.float32), away))
    is_within = b("And", b("GreaterOrEqual", position, zero), b("Less", position, length))
    return b("Mul", near, b("Unsqueeze", b("Cast", is_within, to=float_), b.constant([2])))
