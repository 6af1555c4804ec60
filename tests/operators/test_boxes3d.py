# SPDX-License-Identifier: Apache-2.0
"""The functions of 3-D boxes, compared with formulations in NumPy, SciPy and torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, HalfspaceIntersection
from torch import Tensor

import polyop
import polyop.compat.mmcv as mmcv_ops


def boxes(count: int, seed: int) -> Tensor:
    rng = np.random.default_rng(seed)
    boxes = np.concatenate(
        [rng.uniform(-4, 4, (count, 3)), rng.uniform(0.5, 5, (count, 3)), rng.uniform(-4, 4, (count, 1))], 1
    )
    return torch.from_numpy(boxes.astype(np.float32))


def sides(box: np.ndarray) -> np.ndarray:
    """Returns the half planes (a, b, c), a * x + b * y + c <= 0, of a box in bird's-eye view."""
    planes = []
    for angle, half in ((0, box[3]), (np.pi / 2, box[4]), (np.pi, box[3]), (-np.pi / 2, box[4])):
        normal = np.array([np.cos(box[6] + angle), np.sin(box[6] + angle)])
        planes.append([*normal, -normal @ box[:2] - half / 2])
    return np.array(planes)


def shared_area(a: np.ndarray, b: np.ndarray) -> float:
    """Returns the area from the corners of the intersection of eight half planes, around a point well inside."""
    planes = np.concatenate([sides(a), sides(b)])
    deepest = linprog(
        [0, 0, -1],
        A_ub=np.concatenate([planes[:, :2], np.ones((8, 1))], 1),
        b_ub=-planes[:, 2],
        bounds=[(None, None), (None, None), (0, None)],
    )
    if not deepest.success or deepest.x[2] < 1e-9:
        return 0.0
    return float(ConvexHull(HalfspaceIntersection(planes, deepest.x[:2]).intersections).volume)


@pytest.fixture(scope="module")
def pairs() -> tuple[Tensor, Tensor, Tensor]:
    """Returns boxes, other boxes, and their intersection areas."""
    a, b = boxes(20, 0), boxes(15, 1)
    areas = [[shared_area(p, q) for q in b.double().numpy()] for p in a.double().numpy()]
    return a, b, torch.tensor(areas, dtype=torch.float64)


def test_overlaps(pairs: tuple[Tensor, Tensor, Tensor]) -> None:
    a, b, areas = pairs
    assert 0.2 < (areas > 0).double().mean() < 0.9
    torch.testing.assert_close(mmcv_ops.boxes_overlap_bev(a, b), areas.float(), rtol=1e-4, atol=1e-5)
    low = torch.maximum((a[:, 2] - a[:, 5] / 2)[:, None], b[:, 2] - b[:, 5] / 2)
    high = torch.minimum((a[:, 2] + a[:, 5] / 2)[:, None], b[:, 2] + b[:, 5] / 2)
    shared = areas * (high - low).clamp(min=0)
    united = a[:, 3:6].prod(1)[:, None] + b[:, 3:6].prod(1) - shared
    torch.testing.assert_close(mmcv_ops.boxes_iou3d(a, b), (shared / united).float(), rtol=1e-4, atol=1e-5)
    united = a[:, 3:5].prod(1)[:, None] + b[:, 3:5].prod(1) - areas
    got = torch.ops.polyop.boxes_iou3d(a, b, mode="iou_bev")
    torch.testing.assert_close(got, (areas / united).float(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("normal", [False, True])
def test_nms3d(normal: bool) -> None:
    all_boxes, scores = boxes(60, 2), torch.rand(60, generator=torch.Generator().manual_seed(0))
    seen = all_boxes.double().numpy()
    seen[:, 6] *= not normal
    kept: list[int] = []
    for i in scores.argsort(descending=True).tolist():
        areas = [shared_area(seen[k], seen[i]) for k in kept]
        united = [seen[k, 3:5].prod() + seen[i, 3:5].prod() - area for k, area in zip(kept, areas, strict=True)]
        if all(area / union <= 0.2 for area, union in zip(areas, united, strict=True)):
            kept.append(i)
    suppress = mmcv_ops.nms3d_normal if normal else mmcv_ops.nms3d
    assert suppress(all_boxes, scores, 0.2).tolist() == kept
    assert 5 < len(kept) < 60


def test_roipoint_pool3d() -> None:
    torch.manual_seed(0)
    points, features = torch.rand(2, 300, 3) * 4 - 2, torch.rand(2, 300, 5)
    all_boxes = torch.stack([boxes(6, 3), boxes(6, 4)])
    inside = polyop.points_in_boxes_all(points, all_boxes)
    pooled, empty = mmcv_ops.RoIPointPool3d(8)(points, features, all_boxes)
    for b in range(2):
        for m in range(6):
            index = inside[b, :, m].nonzero()[:, 0]
            assert empty[b, m] == (len(index) == 0)
            want = torch.zeros(8, 8)
            if len(index):
                index = index[torch.arange(8) % len(index)]
                want = torch.cat([points[b, index], features[b, index]], 1)
            assert torch.equal(pooled[b, m], want)
    assert 0 < empty.sum() < 12
    assert polyop.RoIPointPool3d().extra_repr() == "num_sampled_points=512"


@pytest.mark.parametrize("mode", ["max", "avg"])
def test_roiaware_pool3d(mode: str) -> None:
    torch.manual_seed(0)
    points, features, rois = torch.rand(300, 3) * 4 - 2, torch.rand(300, 5) - 0.5, boxes(6, 3)
    inside = polyop.points_in_boxes_all(points[None], rois[None])[0]
    pooled = mmcv_ops.RoIAwarePool3d((2, 3, 2), 6, mode)(rois, points, features)
    cells = torch.tensor([2.0, 3.0, 2.0], dtype=torch.float64)
    for r, box in enumerate(rois.double()):
        want: dict[tuple, list[Tensor]] = {}
        for i in inside[:, r].nonzero()[:, 0].tolist():
            at = points[i].double() - box[:3]
            turn = torch.stack([box[6].cos(), box[6].sin()])
            position = torch.stack([at[:2] @ turn, at[1] * turn[0] - at[0] * turn[1], at[2]])
            position[:2] += box[3:5] / 2
            cell = tuple((position / box[3:6] * cells).long().clamp(max=cells.long() - 1).tolist())
            want.setdefault(cell, []).append(features[i])
        for cell, rows in want.items():
            first = torch.stack(rows[:5])
            torch.testing.assert_close(pooled[(r, *cell)], first.amax(0) if mode == "max" else first.mean(0))
            pooled[(r, *cell)] = 0
    assert not pooled.any()  # outside
