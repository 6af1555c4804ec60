# SPDX-License-Identifier: Apache-2.0
"""The functions of point clouds, compared with formulations in torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import polyop
import polyop.compat.mmcv as mmcv_ops

BATCHES, POINTS, QUERIES = 2, 700, 60


@pytest.fixture
def clouds() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.rand(BATCHES, POINTS, 3), torch.rand(BATCHES, QUERIES, 3)


def distances(a: Tensor, b: Tensor) -> Tensor:
    return torch.cdist(a.double(), b.double(), compute_mode="donot_use_mm_for_euclid_dist")


@pytest.mark.parametrize("transposed", [False, True])
def test_knn(clouds: tuple[Tensor, Tensor], transposed: bool) -> None:
    points, queries = clouds
    want = distances(queries, points).topk(5, largest=False).indices.transpose(1, 2).int()
    if transposed:
        points, queries = points.transpose(1, 2).contiguous(), queries.transpose(1, 2).contiguous()
    assert torch.equal(polyop.knn(5, points, queries, transposed), want)
    own = polyop.knn(1, points, transposed=transposed)
    assert torch.equal(own, torch.arange(POINTS, dtype=torch.int32).expand(BATCHES, 1, -1))


def test_three_nn(clouds: tuple[Tensor, Tensor]) -> None:
    points, queries = clouds
    want = distances(queries, points).topk(3, largest=False)
    dist, index = polyop.three_nn(queries, points)
    assert torch.equal(index, want.indices.int())
    torch.testing.assert_close(dist, want.values.float())


def test_gathers(clouds: tuple[Tensor, Tensor]) -> None:
    features = torch.rand(BATCHES, 4, POINTS)
    index, weight = torch.randint(0, POINTS, (BATCHES, QUERIES, 3)), torch.rand(BATCHES, QUERIES, 3)
    want = torch.stack([features[b][:, index[b]] for b in range(BATCHES)])
    assert torch.equal(polyop.grouping_operation(features, index), want)
    assert torch.equal(polyop.gather_points(features, index[..., 0].int().contiguous()), want[..., 0])
    result = polyop.three_interpolate(features, index, weight)
    torch.testing.assert_close(result, (want * weight[:, None]).sum(-1))


def test_furthest_point_sample(clouds: tuple[Tensor, Tensor]) -> None:
    points, _ = clouds
    squared = (points[:, :, None] - points[:, None]).square()
    matrix = squared[..., 0] + squared[..., 1] + squared[..., 2]
    chosen = torch.zeros(BATCHES, 1, dtype=torch.long)
    for _ in range(29):
        nearest = torch.stack([matrix[b, chosen[b]].amin(0) for b in range(BATCHES)])
        chosen = torch.cat([chosen, nearest.argmax(1, keepdim=True)], 1)
    assert torch.equal(polyop.furthest_point_sample(points, 30), chosen.int())
    assert torch.equal(polyop.furthest_point_sample_with_dist(matrix, 30), chosen.int())


@pytest.mark.parametrize("stacked", [False, True])
def test_ball_query(clouds: tuple[Tensor, Tensor], stacked: bool) -> None:
    points, queries = clouds
    away = distances(queries, points)
    inside = (away >= 0.1) & (away < 0.25)
    want = torch.empty(BATCHES, QUERIES, 8, dtype=torch.int32)
    for b in range(BATCHES):
        for q in range(QUERIES):
            found = inside[b, q].nonzero()[:8, 0].int()
            want[b, q] = torch.cat([found, found[:1].expand(8 - len(found))])
    if stacked:
        counts = torch.full((BATCHES,), POINTS), torch.full((BATCHES,), QUERIES)
        result = mmcv_ops.ball_query(0.1, 0.25, 8, points.flatten(0, 1), queries.flatten(0, 1), *counts)
        assert torch.equal(result, want.flatten(0, 1))
        with pytest.raises(ValueError, match="both xyz_batch_cnt and center_xyz_batch_cnt"):
            mmcv_ops.ball_query(0.1, 0.25, 8, points, queries, counts[0])
    else:
        assert torch.equal(mmcv_ops.ball_query(0.1, 0.25, 8, points, queries), want)


def test_points_in_boxes(clouds: tuple[Tensor, Tensor]) -> None:
    points, _ = clouds
    boxes = torch.rand(BATCHES, 9, 7)
    offset = points.double()[:, :, None] - boxes[:, None, :, :3].double()
    cosine, sine = boxes[:, None, :, 6].double().cos(), boxes[:, None, :, 6].double().sin()
    along = offset[..., 0] * cosine + offset[..., 1] * sine
    across = offset[..., 1] * cosine - offset[..., 0] * sine
    half = boxes[:, None, :, 3:6].double() / 2
    want = (
        (along.abs() < half[..., 0])
        & (across.abs() < half[..., 1])
        & ((offset[..., 2] - half[..., 2]).abs() <= half[..., 2])
    )
    assert torch.equal(mmcv_ops.points_in_boxes_all(points, boxes), want.int())
    first = torch.where(want.any(-1), want.int().argmax(-1), -1)
    assert torch.equal(mmcv_ops.points_in_boxes_part(points, boxes), first.int())
