# SPDX-License-Identifier: Apache-2.0
"""Multi-scale deformable attention, as ops/deform/patterns/deformable_attention.cc finds it: the nodes that replace it,
for each target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from polyop.optimizing.finding import Found, find_pattern
from polyop.optimizing.matching import Builder, Match
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

NAME = "deformable attention"
ORDER = 10
TARGETS = tuple(Target)
NVIDIAS_NODE = "::MultiscaleDeformableAttnPlugin_TRT"  # of TensorRT's plugin library
_NVIDIAS_TYPES = (None, ir.DataType.FLOAT, ir.DataType.FLOAT16)


def find(scope: Scope) -> Iterator[Match]:
    for found in find_pattern(scope, NAME):
        dtype = found.inputs[0].dtype if found.inputs else None
        if not found.refused and scope.target is Target.TENSORRT and dtype not in _NVIDIAS_TYPES:
            why = f"expected values of float32 or float16 for NVIDIA's plugin, got {dtype.name.lower()}"
            found = replace(found, refused=why)
        yield _match(scope, found)


def _match(scope: Scope, found: Found) -> Match:
    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        value, locations, weights, *computed = inputs
        points = found.parameters["points"]
        of_locations, of_weights = (scope.shape(v) for v in found.inputs[1:3])
        spatial, start = _levels(b, np.reshape(found.parameters["sizes"], (-1, 2)), computed)
        locations, weights = _by_level(b, locations, weights, of_locations, of_weights, points)
        if found.parameters["is_discrete"]:
            locations = _pixel_centres(b, locations, spatial, len(points))
        if scope.target is not Target.TENSORRT:
            return [b(found.node, value, spatial, start, locations, weights)]
        spatial, start = (b("Cast", v, to=ir.DataType.INT32.value) for v in (spatial, start))
        by_head = b(NVIDIAS_NODE, value, spatial, start, locations, weights)
        return [b("Reshape", by_head, b.constant([0, 0, -1]))]

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Returns locations inside, at and outside the border."""
        value, locations, weights, *rest = arrays
        drawn = rng.uniform(-0.3, 1.3, locations.shape)
        drawn = np.where(rng.random(locations.shape) < 0.1, rng.choice([0.0, 0.5, 1.0], locations.shape), drawn)
        values = [rng.standard_normal(value.shape), drawn, rng.standard_normal(weights.shape)]
        return [*(v.astype(a.dtype) for v, a in zip(values, arrays, strict=False)), *rest]

    return found.match(build, feeds)


def _levels(b: Builder, sizes: np.ndarray, computed: list[ir.Value]) -> tuple[ir.Value, ir.Value]:
    """Returns spatial_shapes [L, 2] and level_start_index [L].

    sizes: of the levels; -1 for those that are elements 2 and 3 of the next of `computed`.
    """
    if not computed:
        starts = np.concatenate([[0], np.cumsum(sizes.prod(1))[:-1]])
        return b.constant(sizes), b.constant(starts)
    left = iter(computed)
    rows = [b("Slice", next(left), b.constant([2]), b.constant([4])) if s[0] < 0 else b.constant(s) for s in sizes]
    spatial = b("Reshape", b("Concat", *rows, axis=0), b.constant([len(rows), 2]))
    height, width = (b("Gather", spatial, b.constant(i), axis=1) for i in range(2))
    return spatial, b("CumSum", b("Mul", height, width), b.constant(0), exclusive=1)


def _by_level(
    b: Builder,
    locations: ir.Value,
    weights: ir.Value,
    location_shape: tuple[int, ...],
    weight_shape: tuple[int, ...],
    points: list[int],
) -> tuple[ir.Value, ir.Value]:
    """Returns locations [N, Q, M, L, P, 2] and weights [N, Q, M, L, P], padded with points of weight 0."""
    levels, max_points = len(points), max(points)
    if len(set(points)) > 1:
        first = np.concatenate([[0], np.cumsum(points)[:-1]])
        indices = np.array([[f + min(p, n - 1) for p in range(max_points)] for f, n in zip(first, points, strict=True)])
        counts = np.array([[float(p < n) for p in range(max_points)] for n in points])
        index = b.constant(indices)
        taken = b("Gather", weights, index, axis=3)
        real = _real(b, b.constant(counts, np.float32), weights)
        return b("Gather", locations, index, axis=3), b("Mul", taken, real)
    if len(location_shape) == 5:
        locations = b("Reshape", locations, b.constant([0, 0, 0, levels, max_points, 2]))
    if len(weight_shape) == 4:
        weights = b("Reshape", weights, b.constant([0, 0, 0, levels, max_points]))
    return locations, weights


def _pixel_centres(b: Builder, locations: ir.Value, spatial: ir.Value, levels: int) -> ir.Value:
    """Returns the centre of the pixel of each location, rounded and clamped like the index, with integers."""
    sizes = b("Reshape", b("Gather", spatial, b.constant([1, 0]), axis=1), b.constant([levels, 1, 2]))
    as_real, half = _real(b, sizes, locations), _real(b, b.constant(0.5, np.float32), locations)
    pixel = b("Cast", b("Add", b("Mul", locations, as_real), half), to=ir.DataType.INT64.value)
    pixel = b("Min", b("Max", pixel, b.constant(0)), b("Sub", sizes, b.constant(1)))
    return b("Div", b("Add", _real(b, pixel, locations), half), as_real)


def _real(b: Builder, value: ir.Value, like: ir.Value) -> ir.Value:
    """Casts a value to the other's type; to f32 before opset 15, which has no CastLike."""
    return b("CastLike", value, like) if b.opset >= 15 else b("Cast", value, to=ir.DataType.FLOAT.value)
