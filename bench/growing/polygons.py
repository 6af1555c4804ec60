# SPDX-License-Identifier: Apache-2.0
"""Quadrilaterals, rotated boxes and sets of nine points in the plane."""

from __future__ import annotations

import torch
from torch import Tensor

from growing.boxes import rotated, spread
from growing.call import MILLION, Call, Growing, call, normal, scores, uniform


def quadrilaterals(n: int) -> Tensor:
    """Returns spread boxes whose corners are moved by a pixel or two."""
    x1, y1, x2, y2 = spread(n).unbind(1)
    return torch.stack([x1, y1, x2, y1, x2, y2, x1, y2], 1) + normal(n, 8)


def sets(n: int) -> Tensor:
    """Returns nine points in each of the spread boxes."""
    low, high = spread(n).chunk(2, 1)
    return (low[:, None] + uniform(n, 9, 2) * (high - low)[:, None]).flatten(1)


def inside(n: int) -> Call:
    return call("points_in_polygons", uniform(n, 2, high=32 * n**0.5), quadrilaterals(64))


def corners(n: int) -> Call:
    """Eight of 24 slots of each pair."""
    mask = torch.zeros(1, n, 24, dtype=torch.bool)
    mask[..., :8] = True
    return call("diff_iou_rotated_sort_vertices", normal(1, n, 24, 2), mask, torch.full((1, n), 8, dtype=torch.int32))


CASES = [
    Growing("nms_quadri", "spread boxes", 1000, MILLION, lambda n: call("nms_quadri", quadrilaterals(n), scores(n))),
    Growing("box_iou_rotated", "boxes of both sets", 100, 20_000, lambda n: call(
        "box_iou_rotated", rotated(n), rotated(n))),
    Growing("box_iou_quadri", "boxes of both sets", 100, 20_000, lambda n: call(
        "box_iou_quadri", quadrilaterals(n), quadrilaterals(n))),
    Growing("convex_iou", "sets, as many quadrilaterals", 100, 20_000, lambda n: call(
        "convex_iou", sets(n), quadrilaterals(n))),
    Growing("convex_giou", "sets and a quadrilateral of each", 1000, MILLION, lambda n: call(
        "convex_giou", sets(n), quadrilaterals(n))),
    Growing("diff_iou_rotated", "pairs of boxes", 1000, MILLION, lambda n: call(
        "diff_iou_rotated", rotated(n)[None], rotated(n)[None])),
    Growing("diff_iou_rotated_sort_vertices", "pairs of boxes", 1000, MILLION, corners),
    Growing("min_area_polygons", "sets", 1000, MILLION, lambda n: call("min_area_polygons", sets(n))),
    Growing("points_in_polygons", "points, 64 quadrilaterals", 1000, 10 * MILLION, inside),
]  # fmt: skip
