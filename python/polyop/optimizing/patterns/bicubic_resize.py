# SPDX-License-Identifier: Apache-2.0
"""Bicubic resizing, as ops/resize/patterns/bicubic_resize.cc finds it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from polyop.optimizing.finding import Found, find_pattern
from polyop.optimizing.graph import constant
from polyop.optimizing.matching import Builder, Match
from polyop.optimizing.scope import Scope

NAME = "bicubic resize"
ORDER = 80


def find(scope: Scope) -> Iterator[Match]:
    for found in find_pattern(scope, NAME):
        yield _match(found)


def _match(found: Found) -> Match:
    one_node, by_sizes, dims = (found.parameters.get(name) for name in ("one_node", "by_sizes", "dims"))

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        if one_node:
            return b.node(found.node, inputs)
        image, now = inputs
        now = _of_images(b, now, dims)
        return b.node(found.node, [image, now if by_sizes else _scaled(b, image, now)], found.attributes)

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        image, now = arrays
        if constant(found.inputs[1]) is None:
            scales = rng.uniform(0.4, 3, 2)
            new = np.maximum(np.array(image.shape[2:]) * scales, 1) if by_sizes else scales
            now = now.copy()
            now[[dims.index(2), dims.index(3)]] = new
        return [rng.standard_normal(image.shape).astype(image.dtype), now]

    return found.match(build, feeds)


def _of_images(b: Builder, extents: ir.Value, dims: list[int]) -> ir.Value:
    """Returns the two values for rows and columns."""
    if dims == [2, 3]:
        return extents
    rows, columns = dims.index(2), dims.index(3)
    known = constant(extents)
    if known is not None:
        return b.constant(known[[rows, columns]], known.dtype)
    return b("Gather", extents, b.constant([rows, columns]), axis=0)


def _scaled(b: Builder, image: ir.Value, scales: ir.Value) -> ir.Value:
    """Returns rows and columns times the scales, rounded down."""
    old = b("Slice", b("Shape", image), b.constant([2]), b.constant([4]))
    product = b("Mul", b("Cast", old, to=ir.DataType.FLOAT.value), scales)
    return b("Cast", product, to=ir.DataType.INT64.value)
