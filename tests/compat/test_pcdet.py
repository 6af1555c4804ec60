# SPDX-License-Identifier: Apache-2.0
"""pcdet.ops.*, compared with naive references in NumPy and plain torch; OpenPCDet's own Python with it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from polyop.compat.pcdet import (
    bev_pool,
    ingroup_inds,
    iou3d_nms,
    pointnet2_batch,
    pointnet2_stack,
    roiaware_pool3d,
    roipoint_pool3d,
)
from tests.support.processes import ROOT, environment, run


def boxes(count: int, seed: int = 0, spread: float = 4) -> Tensor:
    torch.manual_seed(seed)
    centre, size = torch.randn(count, 3) * spread / 2, torch.rand(count, 3) * 3 + 0.5
    return torch.cat([centre, size, torch.rand(count, 1) * 7 - 3.5], 1)


def inside(points: np.ndarray, box: np.ndarray, margin: float = 1e-5) -> tuple[np.ndarray, np.ndarray]:
    """Returns which points are in a box, and their coordinates along its axes."""
    x, y, z, dx, dy, dz, heading = box.astype(np.float64)
    moved = points[:, :3].astype(np.float64) - [x, y, z]
    c, s = math.cos(heading), math.sin(heading)
    local = np.stack([moved[:, 0] * c + moved[:, 1] * s, moved[:, 1] * c - moved[:, 0] * s, moved[:, 2]], 1)
    near = np.abs(local) < [dx / 2 + margin, dy / 2 + margin, np.inf]
    return near.all(1) & (np.abs(local[:, 2]) <= dz / 2), local


# ---- boxes -----------------------------------------------------------------------------------------


def shared_area(a: np.ndarray, b: np.ndarray) -> float:
    """By clipping the polygon of one rectangle with the edges of the other."""
    corners = []
    for box in (a, b):
        x, y, dx, dy, heading = (float(box[i]) for i in (0, 1, 3, 4, 6))
        c, s = math.cos(heading), math.sin(heading)
        signs = ((-1, -1), (1, -1), (1, 1), (-1, 1))
        corners.append([(x + u * dx / 2 * c - v * dy / 2 * s, y + u * dx / 2 * s + v * dy / 2 * c) for u, v in signs])
    polygon, clip = corners
    for k in range(4):
        (px, py), (qx, qy) = clip[k], clip[(k + 1) % 4]

        def side(point: tuple[float, float], p: tuple[float, ...] = (px, py, qx, qy)) -> float:
            return (p[2] - p[0]) * (point[1] - p[1]) - (p[3] - p[1]) * (point[0] - p[0])

        kept = []
        for i, point in enumerate(polygon):
            previous = polygon[i - 1]
            if side(point) * side(previous) < 0:
                t = side(previous) / (side(previous) - side(point))
                kept.append((previous[0] + t * (point[0] - previous[0]), previous[1] + t * (point[1] - previous[1])))
            if side(point) >= 0:
                kept.append(point)
        polygon = kept
        if not polygon:
            return 0.0
    rolled = polygon[1:] + polygon[:1]
    return abs(sum(p[0] * q[1] - p[1] * q[0] for p, q in zip(polygon, rolled, strict=True))) / 2


def test_overlaps_in_birds_eye_view() -> None:
    a, b = boxes(9), boxes(9, seed=1)
    expected = torch.tensor([[shared_area(p, q) for q in b.numpy()] for p in a.numpy()])
    area = (a[:, 3] * a[:, 4])[:, None] + b[:, 3] * b[:, 4]
    assert (expected > 0).sum() > 20
    result = torch.empty(9, 9)
    assert iou3d_nms.boxes_overlap_bev_gpu(a, b, result) == 1
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
    for function in (iou3d_nms.boxes_iou_bev_gpu, iou3d_nms.boxes_iou_bev_cpu):
        function(a, b, result)
        torch.testing.assert_close(result, expected / (area - expected), rtol=1e-4, atol=1e-5)
    pairs = torch.empty(9, 1)
    for function in (iou3d_nms.boxes_aligned_overlap_bev_gpu, iou3d_nms.paired_boxes_overlap_bev_gpu):
        function(a, b, pairs)
        torch.testing.assert_close(pairs[:, 0], expected.diagonal(), rtol=1e-4, atol=1e-4)
    iou3d_nms.boxes_aligned_iou_bev_cpu(a, b, pairs)
    torch.testing.assert_close(pairs[:, 0], (expected / (area - expected)).diagonal(), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"boxes_overlap_bev_gpu: boxes_b: expected shape \[N, 7\], got \[9, 6\]"):
        iou3d_nms.boxes_overlap_bev_gpu(a, b[:, :6], result)
    with pytest.raises(ValueError, match="boxes_aligned_iou_bev_cpu: boxes_b: expected 9 boxes, got 8"):
        iou3d_nms.boxes_aligned_iou_bev_cpu(a, b[:8], pairs)
    with pytest.raises(ValueError, match=r"boxes_iou_bev_gpu: ans_iou: expected 81 elements, got shape \[9, 1\]"):
        iou3d_nms.boxes_iou_bev_gpu(a, b, pairs)


@pytest.mark.parametrize("normal", [False, True])
def test_suppression(normal: bool) -> None:
    found = boxes(40, spread=6)
    flat = found.clone()
    if normal:
        flat[:, 6] = 0
    expected: list[int] = []
    for i, box in enumerate(flat.numpy()):
        for j in expected:
            other = flat[j].numpy()
            area = shared_area(box, other)
            if area / (box[3] * box[4] + other[3] * other[4] - area) > 0.2:
                break
        else:
            expected.append(i)
    keep = torch.empty(40, dtype=torch.int64)
    count = (iou3d_nms.nms_normal_gpu if normal else iou3d_nms.nms_gpu)(found, keep, 0.2)
    assert 5 < count < 40
    assert keep[:count].tolist() == expected
    with pytest.raises(ValueError, match=r"nms_gpu: keep: expected i64 \[40\], got torch.int32 \[40\]"):
        iou3d_nms.nms_gpu(found, keep.int(), 0.2)


# ---- points in boxes -------------------------------------------------------------------------------


def test_points_in_boxes() -> None:
    found, points = boxes(6), torch.randn(300, 3) * 2
    expected = np.stack([inside(points.numpy(), box)[0] for box in found.numpy()])
    first = np.where(expected.any(0), expected.argmax(0), -1)
    result = torch.full((1, 300), -1, dtype=torch.int32)
    roiaware_pool3d.points_in_boxes_gpu(found[None], points[None], result)
    assert result[0].tolist() == first.tolist()
    assert 20 < (first >= 0).sum() < 280
    all_boxes = torch.empty(6, 300, dtype=torch.int32)
    roiaware_pool3d.points_in_boxes_cpu(found, points, all_boxes)
    wide = np.stack([inside(points.numpy(), box, 1e-2)[0] for box in found.numpy()])
    assert np.array_equal(all_boxes.numpy(), wide)


@pytest.mark.parametrize("pool_method", [0, 1])
def test_roiaware_pooling(pool_method: int) -> None:
    found, points = boxes(4, spread=1), torch.randn(500, 3)
    features = torch.randn(500, 5)
    sizes, room = (3, 2, 4), 4
    expected = np.zeros((4, *sizes, 5))
    table = np.zeros((4, *sizes, room), np.int32)
    best = np.full((4, *sizes, 5), -1)
    for b, box in enumerate(found.numpy()):
        near, local = inside(points.numpy(), box)
        for p in near.nonzero()[0]:
            cell = (local[p] + box[3:6] / 2) / (box[3:6] / sizes)
            cell = tuple(np.clip(cell.astype(int), 0, np.array(sizes) - 1))
            of_cell = table[b][cell]
            if of_cell[0] < room - 1:
                of_cell[0] += 1
                of_cell[of_cell[0]] = p
        for cell in np.ndindex(sizes):
            listed = table[b][cell][1 : 1 + table[b][cell][0]]
            if len(listed):
                values = features[listed].numpy()
                expected[b][cell] = values.mean(0) if pool_method else values.max(0)
                best[b][cell] = listed[values.argmax(0)]
    assert (table[..., 0] == room - 1).any()
    pooled = torch.zeros(4, *sizes, 5)
    argmax, lists = torch.zeros_like(pooled).int(), torch.zeros(4, *sizes, room, dtype=torch.int32)
    roiaware_pool3d.forward(found, points, features, argmax, lists, pooled, pool_method)
    torch.testing.assert_close(pooled, torch.from_numpy(expected).float())
    assert np.array_equal(lists.numpy()[..., 0], table[..., 0])
    for b, cell in ((b, cell) for b in range(4) for cell in np.ndindex(sizes)):
        count = table[b][cell][0]
        assert lists[b][cell][1 : 1 + count].tolist() == table[b][cell][1 : 1 + count].tolist()
    if pool_method == 0:
        assert np.array_equal(argmax.numpy(), best)
    grad, grad_in = torch.randn_like(pooled), torch.zeros(500, 5)
    roiaware_pool3d.backward(lists, argmax, grad, grad_in, pool_method)
    of_points = np.zeros((500, 5))
    for b, cell in ((b, cell) for b in range(4) for cell in np.ndindex(sizes)):
        listed = table[b][cell][1 : 1 + table[b][cell][0]]
        for c in range(5):
            if len(listed) and pool_method == 0:
                of_points[best[b][cell][c], c] += grad[b][cell][c]
            elif len(listed):
                of_points[listed, c] += float(grad[b][cell][c]) / len(listed)
    torch.testing.assert_close(grad_in.double(), torch.from_numpy(of_points), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="pool_method: expected 0 or 1, got 2"):
        roiaware_pool3d.forward(found, points, features, argmax, lists, pooled, 2)


def test_roipoint_pooling() -> None:
    found = torch.stack([boxes(3), boxes(3, seed=1)])
    found[1, 2, :3] = 100  # without points
    points, features = torch.randn(2, 200, 3) * 2, torch.randn(2, 200, 4)
    pooled, empty = torch.zeros(2, 3, 16, 7), torch.zeros(2, 3, dtype=torch.int32)
    roipoint_pool3d.forward(points, found, features, pooled, empty)
    for b in range(2):
        for m in range(3):
            rows = inside(points[b].numpy(), found[b, m].numpy())[0].nonzero()[0]
            assert int(empty[b, m]) == (len(rows) == 0)
            if len(rows):
                index = np.resize(rows[:16], 16)
                assert torch.equal(pooled[b, m], torch.cat([points[b], features[b]], 1)[index])
    assert empty.tolist()[1][2] == 1


# ---- PointNet++ ------------------------------------------------------------------------------------


def test_clouds_of_equal_size() -> None:
    torch.manual_seed(0)
    points, few, features = torch.rand(2, 50, 3), torch.rand(2, 9, 3), torch.randn(2, 4, 50)
    idx = torch.zeros(2, 9, 6, dtype=torch.int32)
    pointnet2_batch.ball_query_wrapper(2, 50, 9, 0.35, 6, few, points, idx)
    near = torch.cdist(few, points) < 0.35
    for b in range(2):
        for m in range(9):
            index = near[b, m].nonzero()[:, 0].tolist()[:6]
            assert idx[b, m].tolist() == (index + [index[0] if index else 0] * 6)[:6]
    grouped = torch.empty(2, 4, 9, 6)
    pointnet2_batch.group_points_wrapper(2, 4, 50, 9, 6, features, idx, grouped)
    leaf = features.clone().requires_grad_()
    expected = torch.stack([leaf[b][:, idx[b].long()] for b in range(2)])
    assert torch.equal(grouped, expected)
    grad = torch.randn_like(grouped)
    (of_formula,) = torch.autograd.grad(expected, leaf, grad)
    found = torch.zeros(2, 4, 50)
    pointnet2_batch.group_points_grad_wrapper(2, 4, 50, 9, 6, grad, idx, found)
    torch.testing.assert_close(found, of_formula)

    chosen = torch.empty(2, 7, dtype=torch.int32)
    pointnet2_batch.farthest_point_sampling_wrapper(2, 50, 7, points, torch.full((2, 50), 1e10), chosen)
    for b in range(2):
        expected_rows = [0]
        distance = torch.full((50,), torch.inf)
        for _ in range(6):
            distance = torch.minimum(distance, (points[b] - points[b, expected_rows[-1]]).square().sum(1))
            expected_rows.append(int(distance.argmax()))
        assert chosen[b].tolist() == expected_rows
    gathered = torch.empty(2, 4, 7)
    pointnet2_batch.gather_points_wrapper(2, 4, 50, 7, features, chosen, gathered)
    assert torch.equal(gathered[1], features[1][:, chosen[1].long()])
    found.zero_()
    pointnet2_batch.gather_points_grad_wrapper(2, 4, 50, 7, torch.ones_like(gathered), chosen, found)
    assert torch.equal(found[0, 2], chosen[0].bincount(minlength=50).float())

    distance, nearest = torch.empty(2, 9, 3), torch.empty(2, 9, 3, dtype=torch.int32)
    pointnet2_batch.three_nn_wrapper(2, 9, 50, few, points, distance, nearest)
    values, index = torch.cdist(few, points).square().topk(3, 2, largest=False)
    torch.testing.assert_close(distance, values)
    assert torch.equal(nearest.long(), index)
    weight = torch.rand(2, 9, 3)
    interpolated = torch.empty(2, 4, 9)
    pointnet2_batch.three_interpolate_wrapper(2, 4, 50, 9, features, nearest, weight, interpolated)
    expected = torch.stack([(leaf[b][:, index[b]] * weight[b]).sum(2) for b in range(2)])
    torch.testing.assert_close(interpolated, expected)
    grad = torch.randn_like(interpolated)
    (of_formula,) = torch.autograd.grad(expected, leaf, grad)
    found.zero_()
    pointnet2_batch.three_interpolate_grad_wrapper(2, 4, 9, 50, grad, nearest, weight, found)
    torch.testing.assert_close(found, of_formula)


SIZES, CENTRES = torch.tensor([40, 0, 25], dtype=torch.int32), torch.tensor([7, 0, 5], dtype=torch.int32)


def stacked() -> tuple[Tensor, Tensor]:
    """Three clouds, of which one is empty."""
    torch.manual_seed(0)
    return torch.rand(65, 3), torch.rand(12, 3)


def clouds() -> list[tuple[range, range]]:
    """The rows of points and of centres of each cloud."""
    return [(range(40), range(7)), (range(40, 40), range(7, 7)), (range(40, 65), range(7, 12))]


def test_stacked_clouds() -> None:
    points, centres = stacked()
    features = torch.randn(65, 4)
    idx = torch.zeros(12, 5, dtype=torch.int32)
    pointnet2_stack.ball_query_wrapper(3, 12, 0.2, 5, centres, CENTRES, points, SIZES, idx)
    for rows, queries in clouds():
        for m in queries:
            near = [k for k, p in enumerate(rows) if (points[p] - centres[m]).norm() < 0.2][:5]
            assert idx[m].tolist() == ((near + [near[0]] * 5)[:5] if near else [-1, 0, 0, 0, 0])
    assert (idx[:, 0] == -1).any()
    idx[idx[:, 0] == -1] = 0
    grouped = torch.empty(12, 4, 5)
    pointnet2_stack.group_points_wrapper(3, 12, 4, 5, features, SIZES, idx, CENTRES, grouped)
    start = torch.tensor([0] * 7 + [40] * 5)[:, None]
    leaf = features.clone().requires_grad_()
    expected = leaf[idx.long() + start].transpose(1, 2)
    assert torch.equal(grouped, expected)
    grad, found = torch.randn_like(grouped), torch.zeros(65, 4)
    (of_formula,) = torch.autograd.grad(expected, leaf, grad)
    pointnet2_stack.group_points_grad_wrapper(3, 12, 4, 65, 5, grad, idx, CENTRES, SIZES, found)
    torch.testing.assert_close(found, of_formula)

    distance, nearest = torch.empty(12, 3), torch.empty(12, 3, dtype=torch.int32)
    pointnet2_stack.three_nn_wrapper(centres, CENTRES, points, SIZES, distance, nearest)
    for rows, queries in clouds():
        if len(queries):
            values, index = torch.cdist(centres[queries], points[rows]).square().topk(3, 1, largest=False)
            torch.testing.assert_close(distance[queries], values)
            assert torch.equal(nearest[queries].long(), index + rows.start)
    weight, out = torch.rand(12, 3), torch.empty(12, 4)
    pointnet2_stack.three_interpolate_wrapper(features, nearest, weight, out)
    expected = (leaf[nearest.long()] * weight[..., None]).sum(1)
    torch.testing.assert_close(out, expected)
    grad = torch.randn_like(out)
    (of_formula,) = torch.autograd.grad(expected, leaf, grad)
    found.zero_()
    pointnet2_stack.three_interpolate_grad_wrapper(grad, nearest, weight, found)
    torch.testing.assert_close(found, of_formula)

    counts = torch.tensor([4, 0, 3], dtype=torch.int32)
    chosen = torch.empty(7, dtype=torch.int32)
    pointnet2_stack.stack_farthest_point_sampling_wrapper(points, torch.full((65,), 1e10), SIZES, chosen, counts)
    alone = torch.empty(1, 3, dtype=torch.int32)
    pointnet2_batch.farthest_point_sampling_wrapper(1, 25, 3, points[None, 40:].contiguous(), points, alone)
    assert chosen[4:].tolist() == (alone[0] + 40).tolist()
    assert int(chosen[0]) == 0
    with pytest.raises(ValueError, match=r"three_nn_wrapper: known_batch_cnt: expected 65 points in 3 clouds, got"):
        pointnet2_stack.three_nn_wrapper(centres, CENTRES, points, SIZES + 1, distance, nearest)
    with pytest.raises(
        ValueError, match=r"three_interpolate_wrapper: idx: expected indices in \[0, 65\), got .* to 99"
    ):
        pointnet2_stack.three_interpolate_wrapper(features, torch.full_like(nearest, 99), weight, out)


def test_voxel_query() -> None:
    torch.manual_seed(0)
    size, ranges, radius, samples = (3, 5, 6), (1, 2, 1), 2.0, 4
    occupied = torch.rand(2, *size) < 0.5
    count = int(occupied.sum())
    indices = torch.full((2, *size), -1, dtype=torch.int32)
    indices[occupied] = torch.arange(count, dtype=torch.int32)
    where = occupied.nonzero()
    points = where[:, 1:].flip(1).float() + torch.rand(count, 3)
    coords = torch.stack([torch.randint(0, n, (20,)) for n in (2, *size)], 1).int()
    centres = coords[:, 1:].flip(1).float() + torch.rand(20, 3)
    centres[3] += 50  # without neighbours
    result = torch.zeros(20, samples, dtype=torch.int32)
    pointnet2_stack.voxel_query_wrapper(20, *size, samples, radius, *ranges, centres, points, coords, indices, result)
    for m in range(20):
        b, *cell = coords[m].tolist()
        found = []
        for dz in range(-ranges[0], ranges[0] + 1):
            for dy in range(-ranges[1], ranges[1] + 1):
                for dx in range(-ranges[2], ranges[2] + 1):
                    z, y, x = cell[0] + dz, cell[1] + dy, cell[2] + dx
                    if 0 <= z < size[0] and 0 <= y < size[1] and 0 <= x < size[2] and indices[b, z, y, x] >= 0:
                        p = int(indices[b, z, y, x])
                        if float((points[p] - centres[m]).square().sum()) <= radius * radius:
                            found.append(p)
        first = found[:samples]
        assert result[m].tolist() == ((first + [first[0]] * samples)[:samples] if found else [-1, 0, 0, 0])


@pytest.mark.parametrize("neighbor_type", [0, 1])
@pytest.mark.parametrize("nsample", [-1, 3])
def test_local_neighbours(neighbor_type: int, nsample: int) -> None:
    points, centres = stacked()
    distance = 0.3
    listed, start_len = torch.zeros(12 * 20, dtype=torch.int32), torch.zeros(12, 2, dtype=torch.int32)
    cumsum = torch.zeros(1, dtype=torch.int32)
    pointnet2_stack.query_stacked_local_neighbor_idxs_wrapper_stack(
        points, SIZES, centres, CENTRES, listed, start_len, cumsum, 20, distance, nsample, neighbor_type
    )
    expected = {}
    for rows, queries in clouds():
        for m in queries:
            offset = points[rows] - centres[m]
            near = offset.norm(dim=1) <= distance if neighbor_type == 1 else (offset.abs() <= distance).all(1)
            expected[m] = (near.nonzero()[:, 0] + rows.start).tolist()[: nsample if nsample > 0 else None]
            first, length = start_len[m].tolist()
            assert listed[first : first + length].tolist() == expected[m]
    assert int(cumsum[0]) == sum(map(len, expected.values())) > 12

    grids = torch.rand(12, 8, 3)
    idx, dist2 = torch.full((12, 8, 3), -1, dtype=torch.int32), torch.zeros(12, 8, 3)
    pointnet2_stack.query_three_nn_by_stacked_local_idxs_wrapper_stack(
        points, centres, grids, idx, dist2, listed[: int(cumsum[0])], start_len, 12, 8
    )
    for m in range(12):
        for g in range(8):
            far = sorted((float((points[p] - grids[m, g]).square().sum()), p) for p in expected[m])[:3]
            far = (far + [far[0]] * 3)[:3] if far else [(math.inf, -1)] * 3
            assert idx[m, g].tolist() == [p for _, p in far]
            torch.testing.assert_close(dist2[m, g], torch.tensor([d for d, _ in far]))
    few, counted = torch.zeros(12, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    pointnet2_stack.query_stacked_local_neighbor_idxs_wrapper_stack(
        points, SIZES, centres, CENTRES, few, start_len, counted, 1, distance, nsample, neighbor_type
    )
    assert int(counted[0]) == int(cumsum[0])  # what does not fit is counted
    assert torch.equal(few, listed[:12])


@pytest.mark.parametrize("pooling_type", [0, 1])
@pytest.mark.parametrize("nsample", [-1, 4])
def test_vector_pool(pooling_type: int, nsample: int) -> None:
    points, centres = stacked()
    features = torch.randn(65, 6)
    grid, of_cell, distance = (2, 3, 2), 3, 0.35
    cells = math.prod(grid)
    new, local, count = torch.zeros(12, cells * of_cell), torch.zeros(12, cells * 3), torch.zeros(12, cells).int()
    listed = torch.zeros(600, 3, dtype=torch.int32)
    total = pointnet2_stack.vector_pool_wrapper(
        points, SIZES, features, centres, CENTRES, new, local, count, listed, *grid, distance, 1, 600, nsample, 0,
        pooling_type,
    )  # fmt: skip
    expected, offsets = torch.zeros(12, cells, of_cell), torch.zeros(12, cells, 3)
    numbers, pairs = torch.zeros(12, cells).int(), []
    for rows, queries in clouds():
        for m in queries:
            taken = 0
            for p in rows:
                offset = points[p] - centres[m]
                if (offset.abs() > distance).any():
                    continue
                axis = [int((float(o) + distance) / (distance * 2 / n)) for o, n in zip(offset, grid, strict=True)]
                cell = min(max((axis[0] * grid[1] + axis[1]) * grid[2] + axis[2], 0), cells - 1)
                if pooling_type == 1 and numbers[m, cell] > 0:
                    continue
                numbers[m, cell] += 1
                folded = features[p].view(2, of_cell)
                expected[m, cell] += folded.sum(0) if pooling_type == 0 else folded[1]
                offsets[m, cell] += offset
                pairs.append([p, m, cell])
                taken += 1
                if taken == nsample:
                    break
    assert total == len(pairs) > 12
    assert listed[:total].tolist() == pairs
    assert torch.equal(count, numbers)
    torch.testing.assert_close(new.view_as(expected), expected)
    torch.testing.assert_close(local.view_as(offsets), offsets)
    grad, found, of_points = torch.randn(12, cells * of_cell), torch.zeros(65, 6), torch.zeros(65, 6)
    pointnet2_stack.vector_pool_grad_wrapper(grad, count, listed[:total], found)
    for p, m, cell in pairs:
        of_points[p] += grad.view(12, cells, of_cell)[m, cell].repeat(2) / numbers[m, cell]
    torch.testing.assert_close(found, of_points)


# ---- bird's-eye view -------------------------------------------------------------------------------


def test_bev_pool() -> None:
    torch.manual_seed(0)
    b, d, h, w = 2, 3, 4, 5
    where = torch.stack([torch.randint(0, n, (200,)) for n in (h, w, d, b)], 1)
    rank = ((where[:, 0] * w + where[:, 1]) * d + where[:, 2]) * b + where[:, 3]
    order = rank.argsort()
    where, rank, x = where[order], rank[order], torch.randn(200, 6)
    starts = torch.cat([torch.tensor([True]), rank[1:] != rank[:-1]]).nonzero()[:, 0].int()
    lengths = torch.diff(starts, append=torch.tensor([200], dtype=torch.int32))
    leaf = x.clone().requires_grad_()
    expected = torch.zeros(b, d, h, w, 6).index_put(
        (where[:, 3], where[:, 2], where[:, 0], where[:, 1]), leaf, accumulate=True
    )
    result = bev_pool.bev_pool_forward(x, where.int(), lengths, starts, b, d, h, w)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
    grad = torch.randn_like(result)
    (of_formula,) = torch.autograd.grad(expected, leaf, grad)
    found = bev_pool.bev_pool_backward(grad, where.int(), lengths, starts, b, d, h, w)
    torch.testing.assert_close(found, of_formula)
    with pytest.raises(ValueError, match=r"bev_pool_forward: geom_feats: expected cells in \[0, 60\), got"):
        bev_pool.bev_pool_forward(x, where.int(), lengths, starts, 1, d, h, w)
    with pytest.raises(ValueError, match="bev_pool_forward: interval_starts: expected ascending intervals of 200"):
        bev_pool.bev_pool_forward(x, where.int(), lengths + 1, starts, b, d, h, w)


def test_numbers_in_groups() -> None:
    groups = torch.tensor([3, 1, 3, 3, 0, 1])
    result = torch.full_like(groups, -1)
    ingroup_inds.forward(groups, result)
    assert result.tolist() == [0, 0, 1, 2, 0, 1]


# ---- OpenPCDet's own Python ------------------------------------------------------------------------

OPENPCDET = """
import sys, types
from importlib.machinery import ModuleSpec
root = sys.argv[1]
sys.modules["SharedArray"] = types.ModuleType("SharedArray")
# Its operators alone: the whole package imports packages of data sets.
for name in ("pcdet", "pcdet.utils"):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = [root + "/" + name.replace(".", "/")]
    module.__spec__ = ModuleSpec(name, None, is_package=True)
    module.__spec__.submodule_search_locations = module.__path__
import polyop.compat
names = [name for name in polyop.compat.install() if name.startswith("pcdet.")]
assert len(names) == 7, names
import torch
from pcdet.ops.iou3d_nms import iou3d_nms_utils
from pcdet.ops.pointnet2.pointnet2_batch.pointnet2_modules import PointnetFPModule, PointnetSAModuleMSG
from pcdet.ops.pointnet2.pointnet2_stack.pointnet2_modules import StackSAModuleMSG, VectorPoolAggregationModule
from pcdet.ops.bev_pool.bev_pool import bev_pool
from pcdet.ops.roiaware_pool3d.roiaware_pool3d_utils import RoIAwarePool3d
from tests.compat.test_pcdet import boxes

torch.manual_seed(0)
xyz, features = torch.rand(2, 200, 3), torch.randn(2, 4, 200, requires_grad=True)
down = PointnetSAModuleMSG(npoint=50, radii=[0.2, 0.4], nsamples=[8, 16], mlps=[[4, 8], [4, 8]])
up = PointnetFPModule(mlp=[16 + 4, 8])
few, pooled = down(xyz, features)
out = up(xyz, few, features, pooled)
out.square().sum().backward()
assert out.shape == (2, 8, 200) and features.grad.abs().sum() > 0
print("PointNet++", tuple(few.shape), tuple(pooled.shape))

points, rows = torch.rand(150, 3), torch.randn(150, 4, requires_grad=True)
count, centres = torch.tensor([90, 60]).int(), torch.rand(30, 3)
of_centres = torch.tensor([18, 12]).int()
layer = StackSAModuleMSG(radii=[0.3], nsamples=[8], mlps=[[4, 8]])
_, pooled = layer(points, count, centres, of_centres, rows)
pooled.square().sum().backward()
assert rows.grad.abs().sum() > 0
rows.grad = None
for kind in ("local_interpolation", "voxel_avg_pool", "voxel_random_choice"):
    layer = VectorPoolAggregationModule(
        input_channels=4, num_local_voxel=(2, 2, 2), local_aggregation_type=kind, num_reduced_channels=2,
        num_channels_of_local_aggregation=4, post_mlps=(8,), max_neighbor_distance=0.4)
    _, pooled = layer(xyz=points, xyz_batch_cnt=count, new_xyz=centres, new_xyz_batch_cnt=of_centres, features=rows)
    pooled.square().sum().backward()
    assert rows.grad.abs().sum() > 0, kind
    rows.grad = None
    print(kind, tuple(pooled.shape))

found = boxes(30)
kept, _ = iou3d_nms_utils.nms_gpu(found, torch.rand(30), 0.1)
assert 0 < len(kept) < 30
iou = iou3d_nms_utils.boxes_iou3d_gpu(found, found)
torch.testing.assert_close(iou.diagonal(), torch.ones(30), rtol=1e-3, atol=1e-3)
pool = RoIAwarePool3d(out_size=4, max_pts_each_voxel=16)
values = torch.randn(150, 4, requires_grad=True)
pool(found, points * 4 - 2, values, "max").sum().backward()
assert values.grad.abs().sum() > 0
coords = torch.stack([torch.randint(0, n, (150,)) for n in (6, 5, 1, 2)], 1)
print("bev", tuple(bev_pool(values, coords, 2, 1, 6, 5).shape))
"""


def test_openpcdets_own_modules(not_run: Callable[[str], None]) -> None:
    root = os.environ.get("POLYOP_OPENPCDET")
    if root is None:
        return not_run("POLYOP_OPENPCDET names no checkout of OpenPCDet")
    said = run("python", "-c", OPENPCDET, root, env=environment()).splitlines()
    assert said == [
        "PointNet++ (2, 50, 3) (2, 16, 50)",
        "local_interpolation (30, 8)",
        "voxel_avg_pool (30, 8)",
        "voxel_random_choice (30, 8)",
        "bev (2, 4, 1, 6, 5)",
    ]


PV_RCNN = """
import sys, types
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
root = sys.argv[1]
sys.modules["SharedArray"] = types.ModuleType("SharedArray")
# Its models and operators alone: the whole package imports packages of data sets.
for name in ("pcdet", "pcdet.utils", "pcdet.models", "pcdet.models.detectors"):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = [root + "/" + name.replace(".", "/")]
    module.__spec__ = ModuleSpec(name, None, is_package=True)
    module.__spec__.submodule_search_locations = module.__path__
import polyop.compat
polyop.compat.install()
import numpy as np
import torch
import yaml
from cumm import tensorview
from spconv.utils import Point2VoxelCPU3d
torch.Tensor.cuda = lambda tensor, *_, **__: tensor

class Options(dict):
    def __init__(self, given=()):
        super().__init__({key: self.of(value) for key, value in dict(given).items()})

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(name)

    __setattr__ = dict.__setitem__

    @classmethod
    def of(cls, value):
        if isinstance(value, dict):
            return cls(value)
        return [cls.of(v) for v in value] if isinstance(value, list) else value

sys.modules["easydict"] = types.SimpleNamespace(EasyDict=Options)

torch.manual_seed(0)
np.random.seed(0)
config = Options(yaml.safe_load(Path(root, "tools/cfgs/kitti_models/pv_rcnn.yaml").read_text()))
options, extent, size = config.MODEL, np.array([0, -6.4, -3, 12.8, 6.4, 1], np.float32), [0.05, 0.05, 0.1]
options.PFE.NUM_KEYPOINTS = 128
options.ROI_HEAD.TARGET_CONFIG.ROI_PER_IMAGE = 32
options.ROI_HEAD.DP_RATIO = 0
data = types.SimpleNamespace(
    class_names=config.CLASS_NAMES, grid_size=np.array([256, 256, 40]), point_cloud_range=extent, voxel_size=size,
    point_feature_encoder=types.SimpleNamespace(num_point_features=4), depth_downsample_factor=None,
)
model = import_module("pcdet.models.detectors.pv_rcnn").PVRCNN(options, 3, data)

# The points of a car's surface, and of the ground.
box = torch.tensor([6.0, 1.0, -1.0, 3.9, 1.6, 1.56, 0.0])
surface, axis = (torch.rand(600, 3) - 0.5) * box[3:6], torch.randint(0, 3, (600,))
surface[torch.arange(600), axis] = (box[3:6] / 2)[axis] * torch.randint(0, 2, (600,)).mul(2).sub(1)
ground = torch.rand(2000, 3) * torch.tensor([12.8, 12.8, 0.05]) + torch.tensor([0, -6.4, -1.8])
points = torch.cat([torch.cat([surface + box[:3], ground]), torch.rand(2600, 1)], 1).numpy()
voxelizer = Point2VoxelCPU3d(
    vsize_xyz=size, coors_range_xyz=extent.tolist(), num_point_features=4, max_num_voxels=16000,
    max_num_points_per_voxel=5,
)
voxels, coords, counts = (t.numpy() for t in voxelizer.point_to_voxel(tensorview.from_numpy(points)))
scene = {
    "voxels": voxels, "voxel_num_points": counts.astype(np.float32), "points": np.pad(points, ((0, 0), (1, 0))),
    "voxel_coords": np.pad(coords, ((0, 0), (1, 0))).astype(np.float32),
}

def batch():
    tensors = {name: torch.from_numpy(array.copy()) for name, array in scene.items()}
    return {**tensors, "batch_size": 1, "gt_boxes": torch.cat([box, torch.ones(1)])[None, None]}

losses = []
optimizer = torch.optim.SGD(model.parameters(), 1e-4)
for step in range(3):
    torch.manual_seed(1)  # the same sample of RoIs
    np.random.seed(1)
    result, _, _ = model.train()(batch())
    optimizer.zero_grad()
    result["loss"].backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    for name, part in model.named_children():
        assert not list(part.parameters()) or any(p.grad.any() for p in part.parameters()), name
    optimizer.step()
    losses.append(result["loss"].item())
with torch.no_grad():
    (found,), recall = model.eval()(batch())
assert found["pred_boxes"].shape[1] == 7 and found["pred_boxes"].isfinite().all()
assert len(found["pred_boxes"]) == len(found["pred_scores"]) == len(found["pred_labels"]) > 0
print(losses, len(found["pred_boxes"]), file=sys.stderr)
print(losses[2] < losses[0], recall["gt"])
"""


@pytest.mark.slow  # minutes on a busy machine
def test_the_whole_pv_rcnn(not_run: Callable[[str], None]) -> None:
    """OpenPCDet's own model, built from its configuration for a smaller scene, trains and detects."""
    root = os.environ.get("POLYOP_OPENPCDET")
    if root is None:
        return not_run("POLYOP_OPENPCDET names no checkout of OpenPCDet")
    packages = environment(ROOT / ".deps" / "torchvision", ROOT / ".deps" / "openmmlab")
    assert run("python", "-W", "ignore", "-c", PV_RCNN, root, env=packages) == "True 1\n"
