# SPDX-License-Identifier: Apache-2.0
"""Masks that are pasted into images one by one, as in the Loop of torchvision's Mask R-CNN:

    for mask, (x1, y1, x2, y2) in zip(masks, boxes):
        image = zeros(H, W)
        image[y1 : y2 + 1, x1 : x2 + 1] = interpolate(mask, size of the box, "bilinear"), clipped to the image
        pasted = cat([pasted, image])

Each step copies all images before it. Bilinear interpolation is rows @ mask @ columns, where each row and column inside
the box has two nonzero weights. So all masks are two matrix products, with ONNX's own MatMul. Boxes are integers and
overlap with the image.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import cone_of, constant, is_standard, outer_values, producer
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.patterns._loops import body_of, states
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

NAME = "mask pasting"
ORDER = 30
TARGETS = tuple(Target)
_MODES = ("half_pixel", "pytorch_half_pixel")
_DRAWN = 6


def find(scope: Scope) -> Iterator[Match]:
    yield from matches_of((n for n in scope.graph if is_standard(n, "Loop")), lambda node: _match(scope, node))


def _match(scope: Scope, loop: ir.Node) -> Match | None:
    grown = [s for s in states(loop) if (c := producer(s.after, "Concat")) is not None and c.inputs[0] is s.before]
    resized = [n for n in body_of(loop) if is_standard(n, "Resize")]
    if len(grown) != 1 or len(resized) != 1 or any(v is not grown[0].last and v.uses() for v in loop.outputs):
        return None
    first, pasted = grown[0].first, grown[0].last
    shape = scope.shape(first)
    mode = resized[0].attributes.get("coordinate_transformation_mode")
    is_linear = resized[0].attributes.get_string("mode", "nearest") == "linear"
    if shape is None or len(shape) != 3 or shape[0] != 0 or not is_linear:
        return None
    if mode is not None and mode.value not in _MODES:
        return None
    read = [v for v in dict.fromkeys(outer_values(loop)) if constant(v) is None]
    masks = [v for v in read if len(s := scope.shape(v) or ()) == 4 and s[1] == 1]
    boxes = [v for v in read if len(s := scope.shape(v) or ()) == 2 and s[1] == 4]
    if len(masks) != 1 or len(boxes) != 1:
        return None
    inputs = [masks[0], boxes[0], *([first] if constant(first) is None else [])]
    if cone_of([pasted], inputs) is None:
        return None
    keeps_single = mode is None or mode.value == "half_pixel"

    def build(b: Builder, given: list[ir.Value]) -> list[ir.Value]:
        masks, boxes, *more = given
        size = b("Shape", more[0]) if more else b.constant(shape)
        x1, y1, x2, y2 = b.node("Split", [boxes, b.constant([1, 1, 1, 1])], {"axis": 1}, outputs=4)
        weights = [
            _weights(
                b, begin, end, b("Shape", masks, start=axis + 2, end=axis + 3), _at(b, size, axis + 1), keeps_single
            )
            for axis, begin, end in ((0, y1, y2), (1, x1, x2))
        ]
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

    return Match(name_of(loop), inputs, [pasted], build, float(np.prod(shape[1:])), feeds=feeds)


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
