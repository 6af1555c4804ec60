# SPDX-License-Identifier: Apache-2.0
"""RoIAlign over a feature pyramid, as ops/rois/patterns/multi_level_roi_align.cc finds it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from polyop.optimizing.finding import Found, find_pattern
from polyop.optimizing.matching import Builder, Match
from polyop.optimizing.scope import Scope

NAME = "multi-level RoIAlign"
ORDER = 20


def find(scope: Scope) -> Iterator[Match]:
    for found in find_pattern(scope, NAME):
        yield _match(found)


def _match(found: Found) -> Match:
    images = found.parameters.get("images", 0)

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        dtype = (inputs[0].dtype or ir.DataType.FLOAT).numpy()
        rois = [
            b("Pad", of_image, b.constant([0, 1, 0, 0]), b.constant(i, dtype))
            for i, of_image in enumerate(inputs[:images])
        ]
        table = b("Concat", *rois, axis=0) if len(rois) > 1 else rois[0]
        return b.node(found.node, [_without_negative(b, table, dtype), *inputs[images:]], found.attributes)

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        lists, maps = arrays[:images], arrays[images:]
        finest, strides = (found.attributes[name] for name in ("finest_scale", "featmap_strides"))
        extent = max(maps[0].shape[2:]) * strides[0]
        drawn = [_boxes(rng, len(of_image), extent, finest, len(maps)) for of_image in lists]
        return [
            *(d.astype(a.dtype) for d, a in zip(drawn, lists, strict=True)),
            *(rng.standard_normal(m.shape).astype(m.dtype) for m in maps),
        ]

    return found.match(build, feeds)


def _without_negative(b: Builder, rois: ir.Value, dtype: np.dtype) -> ir.Value:
    """Returns rows (image, x1, y1, x2, y2). Moves boxes of negative or NaN area far outside the image."""
    columns = [b("Slice", rois, b.constant([i]), b.constant([i + 1]), b.constant([1])) for i in range(1, 5)]
    area = b("Mul", b("Sub", columns[2], columns[0]), b("Sub", columns[3], columns[1]))
    zero = b.constant(0, dtype)
    real = b("Or", b("Greater", area, zero), b("Equal", area, zero))
    return b("Where", real, rois, b.constant([0, -6e4, -6e4, -6e4, -6e4], dtype))


def _boxes(rng: np.random.Generator, count: int, extent: float, finest: int, levels: int) -> np.ndarray:
    """Returns boxes for all levels: some exactly at a level's limit, some of zero or negative area, some outside the
    image."""
    sizes = finest * 2.0 ** rng.uniform(-1, levels + 1, (count, 1)) * 2.0 ** rng.uniform(-1, 1, (count, 2))
    exact = np.broadcast_to(finest * 2.0 ** rng.integers(0, levels + 1, (count, 1)), sizes.shape)
    sizes = np.where(rng.random((count, 1)) < 0.2, exact, sizes)
    sizes = sizes * np.where(rng.random((count, 2)) < 0.1, rng.choice([0.0, -1.0], (count, 2)), 1.0)
    corner = np.floor(rng.uniform(-0.1, 1, (count, 2)) * extent)
    return np.concatenate([corner, corner + sizes], 1)
