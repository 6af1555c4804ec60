# SPDX-License-Identifier: Apache-2.0
"""Bilinear grid sampling in standard operators, as in MMCV's bilinear_grid_sample:

x, y = the grid's coordinates in pixels, x0 = floor(x), y0 = floor(y)
padded = the image with a border of zeros
output = sum of padded[y0 or y0 + 1, x0 or x0 + 1] (gathered, indices clamped to the border) * the corner's weight
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import is_standard, operands, producer, trail
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope

NAME = "grid sampling"
ORDER = 30
NODE = "polyop::GridSample"
_MAX_STEPS = 300


def find(scope: Scope) -> Iterator[Match]:
    yield from matches_of((n for n in scope.graph if is_standard(n, "Pad")), lambda node: _match(scope, node))


def _match(scope: Scope, pad: ir.Node) -> Match | None:
    image = pad.inputs[0]
    shape, padded = scope.shape(image), scope.shape(pad.outputs[0])
    if shape is None or padded is None or len(shape) != 4 or padded != (*shape[:2], shape[2] + 2, shape[3] + 2):
        return None
    corners = [
        user
        for flat, _ in pad.outputs[0].uses()
        if is_standard(flat, "Reshape", "Flatten")
        for user, i in flat.outputs[0].uses()
        if is_standard(user, "GatherElements") and i == 0
    ]
    if len(corners) != 4:
        return None
    index_shape = scope.shape(corners[0].inputs[1])

    def is_grid(s: tuple[int, ...]) -> bool:
        return len(s) == 4 and s[0] == shape[0] and s[3] == 2 and s[1] * s[2] == index_shape[-1]

    grid = _before(scope, corners[0].inputs[1], is_grid) if index_shape else None
    if grid is None:
        return None
    output_shape = (*shape[:2], *scope.shape(grid)[1:3])
    output = _behind(scope, corners[0].outputs[0], lambda s: s == output_shape)
    if output is None:
        return None

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        mode = "linear" if b.opset >= 20 else "bilinear"
        aligned = int(_is_aligned(corners[0].inputs[1]))
        return b.node(NODE, inputs, {"mode": mode, "padding_mode": "zeros", "align_corners": aligned})

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Returns coordinates inside, at and outside the border."""
        values = [rng.standard_normal(arrays[0].shape), rng.uniform(-1.5, 1.5, arrays[1].shape)]
        values[1] = np.where(
            rng.random(arrays[1].shape) < 0.1, rng.choice([-1.0, 0.0, 1.0], arrays[1].shape), values[1]
        )
        return [v.astype(a.dtype) for v, a in zip(values, arrays, strict=True)]

    return Match(name_of(pad), [image, grid], [output], build, float(np.prod(output_shape)), feeds=feeds)


def _before(scope: Scope, value: ir.Value, fits: Callable[[tuple[int, ...]], bool]) -> ir.Value | None:
    """Returns the nearest tensor with a matching shape that the value depends on, or None."""
    return _nearest(scope, value, fits, lambda v: [i for n in [v.producer()] if n is not None for i in n.inputs])


def _behind(scope: Scope, value: ir.Value, fits: Callable[[tuple[int, ...]], bool]) -> ir.Value | None:
    """Returns the nearest tensor with a matching shape that depends on the value, or None."""
    return _nearest(scope, value, fits, lambda v: [o for n, _ in v.uses() for o in n.outputs])


def _nearest(
    scope: Scope,
    value: ir.Value,
    fits: Callable[[tuple[int, ...]], bool],
    next_of: Callable[[ir.Value], list[ir.Value | None]],
) -> ir.Value | None:
    open_ = [value]
    seen: set[ir.Value] = set()
    while open_ and len(seen) < _MAX_STEPS:
        value = open_.pop(0)
        if value in seen:
            continue
        seen.add(value)
        if (shape := scope.shape(value)) is not None and fits(shape):
            return value
        open_ += [v for v in next_of(value) if v is not None]
    return None


def _is_aligned(index: ir.Value) -> bool:
    """Returns True if pixels are (x + 1) / 2 * (size - 1), False if they are ((x + 1) * size - 1) / 2."""
    open_, seen = [index], set()
    while open_:
        value = open_.pop()
        if value in seen:
            continue
        seen.add(value)
        if (floor := producer(value, "Floor")) is not None:
            value = trail(floor.inputs[0])[-1]
            while (step := producer(value, "Div", "Mul")) is not None and (found := operands(step)) is not None:
                value = found[0]
            return producer(value, "Sub") is None
        node = value.producer()
        open_ += [v for v in node.inputs if v is not None] if node is not None else []
    return False
