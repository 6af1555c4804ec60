# SPDX-License-Identifier: Apache-2.0
"""`mmcv.ops` on point clouds and voxels with polyop as its compiled module, compared with loops and dense operators."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tests.support.openmmlab import mmcv_ops


@pytest.fixture(scope="module")
def ops() -> Iterator[ModuleType]:
    with mmcv_ops() as module:
        yield module


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def test_neighbours(ops: ModuleType) -> None:
    xyz, centers = torch.rand(2, 40, 3), torch.rand(2, 9, 3)
    distances = torch.cdist(centers.double(), xyz.double())
    assert torch.equal(ops.knn(5, xyz, centers).long(), distances.topk(5, largest=False).indices.mT)
    transposed = ops.knn(5, xyz.mT.contiguous(), centers.mT.contiguous(), True)
    assert torch.equal(transposed, ops.knn(5, xyz, centers))
    near, index = ops.three_nn(centers, xyz)
    want = distances.topk(3, largest=False)
    assert torch.equal(index.long(), want.indices)
    torch.testing.assert_close(near.double(), want.values, rtol=1e-4, atol=1e-5)

    balls = ops.ball_query(0, 0.4, 6, xyz, centers)
    for b in range(2):
        for m in range(9):
            inside = [n for n in range(40) if distances[b, m, n] < 0.4][:6]
            assert balls[b, m].tolist() == inside + inside[:1] * (6 - len(inside))
    counts, center_counts = torch.tensor([25, 55]).int(), torch.tensor([7, 11]).int()
    stacked = ops.ball_query(0, 0.4, 6, xyz.view(80, 3), centers.view(18, 3), counts, center_counts)
    for m, row in enumerate(stacked.tolist()):
        cloud = slice(0, 25) if m < 7 else slice(25, 80)
        far = torch.linalg.norm(xyz.view(80, 3)[cloud].double() - centers.view(18, 3)[m].double(), dim=1)
        inside = torch.nonzero(far < 0.4).squeeze(1).tolist()[:6]
        assert row == inside + inside[:1] * (6 - len(inside))


def test_furthest_points(ops: ModuleType) -> None:
    xyz = torch.rand(2, 50, 3)
    squared = torch.cdist(xyz.double(), xyz.double()) ** 2
    want = []
    for table in squared:
        chosen = [0]
        while len(chosen) < 8:
            chosen.append(int(table[chosen].amin(0).argmax()))
        want.append(chosen)
    assert ops.furthest_point_sample(xyz, 8).tolist() == want
    assert ops.furthest_point_sample_with_dist(squared.float(), 8).tolist() == want


def test_features_of_neighbours(ops: ModuleType) -> None:
    features, index = torch.randn(2, 5, 12), torch.randint(0, 12, (2, 7, 3)).int()
    batch = torch.arange(2)[:, None, None]
    weight = torch.rand(2, 7, 3)
    cases = [
        (lambda f: ops.grouping_operation(f, index), lambda f: f.mT[batch, index.long()].permute(0, 3, 1, 2)),
        (
            lambda f: ops.gather_points(f, index[..., 0].contiguous()),
            lambda f: f.mT[batch[..., 0], index[..., 0].long()].mT,
        ),
        (
            lambda f: ops.three_interpolate(f, index, weight),
            lambda f: (f.mT[batch, index.long()] * weight[..., None]).sum(2).mT,
        ),
    ]
    for function, want in cases:
        compare(function, want, features)
    rows, own = torch.tensor([4, 8]).int(), torch.tensor([3, 2]).int()
    positions = torch.cat([torch.randint(0, 4, (3, 6)), torch.randint(0, 8, (2, 6))]).int()
    offset = torch.tensor([0, 0, 0, 4, 4])[:, None]
    compare(
        lambda f: ops.grouping_operation(f, positions, rows, own),
        lambda f: f[positions.long() + offset].mT,
        torch.randn(12, 5),
    )


@pytest.mark.parametrize("rows", [[4, 8], [0, 5], [0, 0]])
def test_neighbours_beyond_a_cloud(ops: ModuleType, rows: list[int]) -> None:
    """They have features of 0 and give no gradient, not even to the points of the next cloud."""
    positions = torch.tensor([[0, 3, 4], [7, 8, -1], [1, 4, 5], [100, 7, 0]]).int()
    clouds = [0, 0, 1, 1]

    def want(features: Tensor) -> Tensor:
        first = [0, rows[0]]
        picked = [
            features[first[c] + i] if 0 <= i < rows[c] else features.sum(0) * 0
            for c, line in zip(clouds, positions.tolist(), strict=True)
            for i in line
        ]
        return torch.stack(picked).view(4, 3, 5).mT

    counts = torch.tensor(rows).int()
    compare(
        lambda f: ops.grouping_operation(f, positions, counts, torch.tensor([2, 2]).int()),
        want,
        torch.randn(sum(rows), 5),
    )


def compare(function, want, features: Tensor) -> None:
    """Compares results and gradients."""
    leaves = features.clone().requires_grad_(), features.clone().requires_grad_()
    out, expected = function(leaves[0]), want(leaves[1])
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
    weights = torch.randn_like(expected)
    for result in (out, expected):
        (result * weights).sum().backward()
    torch.testing.assert_close(leaves[0].grad, leaves[1].grad, rtol=1e-4, atol=1e-5)


def test_assign_score_withk(ops: ModuleType) -> None:
    scores, points, centers = torch.rand(2, 4, 3, 5), torch.randn(2, 9, 5, 6), torch.randn(2, 9, 5, 6)
    index = torch.randint(0, 9, (2, 4, 3))
    index[0, 1, 2] = -1
    index[1, 2, 1] = 9
    index[1, 3, 0] = 9  # an invalid centre

    def want(scores: Tensor, points: Tensor, centers: Tensor) -> Tensor:
        out = torch.zeros(2, 6, 4, 3)
        for b in range(2):
            for n in range(4):
                for k in range(3):
                    if 0 <= index[b, n, k] < 9 and 0 <= index[b, n, 0] < 9:
                        out[b, :, n, k] = scores[b, n, k] @ (points[b, index[b, n, k]] - centers[b, index[b, n, 0]])
        return out

    leaves = [[t.clone().requires_grad_() for t in (scores, points, centers)] for _ in range(2)]
    out, expected = ops.assign_score_withk(*leaves[0], index, "sum"), want(*leaves[1])
    torch.testing.assert_close(out, expected)
    for result in (out, expected):
        result.square().sum().backward()
    for one, other in zip(*leaves, strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5)


def test_chamfer_distance(ops: ModuleType) -> None:
    a, b = torch.rand(2, 9, 2), torch.rand(2, 7, 2)
    for function in (lambda a: ops.chamfer_distance(a, b)[0], lambda a: ops.chamfer_distance(a, b)[1]):
        axis = 2 if function(a).shape[1] == 9 else 1
        compare(function, lambda a, axis=axis: ((a[:, :, None] - b[:, None]) ** 2).sum(-1).amin(axis), a)
    indices = ops.chamfer_distance(a, b)[2:]
    table = torch.cdist(a.double(), b.double())
    assert torch.equal(indices[0].long(), table.argmin(2))
    assert torch.equal(indices[1].long(), table.argmin(1))


BOXES = torch.tensor([[0.0, 0, 0, 4, 2, 3, 0.5], [1, 1, -1, 3, 3, 2, -1.2], [50, 50, 0, 1, 1, 1, 0]])


def local(points: Tensor, box: Tensor) -> Tensor:
    """Returns points in a box's own coordinates, from its first corner."""
    moved = points.double() - box[:3].double()
    c, s = math.cos(-float(box[6])), math.sin(-float(box[6]))
    return torch.stack(
        [moved[:, 0] * c - moved[:, 1] * s + box[3] / 2, moved[:, 0] * s + moved[:, 1] * c + box[4] / 2, moved[:, 2]], 1
    )


def inside(points: Tensor) -> Tensor:
    return torch.stack([((local(points, b) > 0) & (local(points, b) < b[3:6])).all(1) for b in BOXES], 1)


def test_points_in_boxes(ops: ModuleType) -> None:
    points = torch.rand(1, 300, 3) * 6 - 3
    want = inside(points[0]).int()
    assert torch.equal(ops.points_in_boxes_all(points, BOXES[None])[0], want)
    assert torch.equal(ops.points_in_boxes_cpu(points, BOXES[None])[0], want)
    first = torch.where(want.any(1), want.argmax(1), -1)
    assert torch.equal(ops.points_in_boxes_part(points, BOXES[None])[0].long(), first)

    features = torch.randn(1, 300, 4)
    pooled, empty = ops.RoIPointPool3d(16)(points, features, BOXES[None])
    assert empty.tolist() == [[0, 0, 1]]
    rows = torch.cat([points, features], -1)[0]
    for n in range(2):
        chosen = torch.nonzero(want[:, n]).squeeze(1)[:16]
        chosen = chosen[torch.arange(16) % len(chosen)]
        assert torch.equal(pooled[0, n], rows[chosen])


@pytest.mark.parametrize("mode", ["max", "avg"])
def test_roi_aware_pooling(ops: ModuleType, mode: str) -> None:
    points = torch.rand(300, 3) * 6 - 3
    held = inside(points)

    def want(features: Tensor) -> Tensor:
        out = torch.zeros(3, 2, 3, 2, 4)
        for n, box in enumerate(BOXES):
            cells = (local(points, box) / (box[3:6] / torch.tensor([2, 3, 2]))).long()
            for x in range(2):
                for y in range(3):
                    for z in range(2):
                        mine = held[:, n] & (cells == torch.tensor([x, y, z])).all(1)
                        values = features[torch.nonzero(mine).squeeze(1)[:7]]
                        if len(values):
                            out[n, x, y, z] = values.amax(0) if mode == "max" else values.mean(0)
        return out

    pool = ops.RoIAwarePool3d((2, 3, 2), 8, mode)
    compare(lambda features: pool(BOXES, points, features), want, torch.randn(300, 4))


def test_voxels(ops: ModuleType) -> None:
    points = torch.rand(200, 4) * 5 - 0.5
    size, span = [0.5, 1.0, 2.0], [0, 0, 0, 4, 4, 4]
    coors = ops.Voxelization(size, span, -1)(points)
    number = torch.floor(points[:, :3] / torch.tensor(size)).int()
    outside = ((number < 0) | (number >= torch.tensor([8, 4, 2]))).any(1)
    want = torch.where(outside[:, None], -1, number.flip(1))
    assert torch.equal(coors, want)

    voxels, positions, counts = ops.Voxelization(size, span, 3, 20)(points)
    groups: dict[tuple, list[int]] = {}
    for n, position in enumerate(map(tuple, want.tolist())):
        if position[0] >= 0 and (position in groups or len(groups) < 20):
            groups.setdefault(position, []).append(n)
    assert positions.tolist() == [list(p) for p in groups]
    assert counts.tolist() == [min(3, len(g)) for g in groups.values()]
    for row, group in zip(voxels, groups.values(), strict=True):
        chosen = points[group[:3]]
        assert torch.equal(row, torch.cat([chosen, torch.zeros(3 - len(chosen), 4)]))

    features = torch.randn(200, 5)
    kept = ~outside
    unique, inverse = want[kept].unique(dim=0, return_inverse=True)
    for mode, reduce in (("max", "amax"), ("mean", "mean")):
        scatter = ops.DynamicScatter(size, span, mode == "mean")

        def reduced(f: Tensor, reduce: str = reduce) -> Tensor:
            start = torch.zeros(len(unique), 5)
            return start.scatter_reduce(0, inverse[:, None].expand(-1, 5), f[kept], reduce, include_self=False)

        compare(lambda f, scatter=scatter: scatter(f, coors)[0], reduced, features)
        assert torch.equal(scatter(features, coors)[1], unique)


# ---- sparse convolution against a dense one --------------------------------------------------------


def scattered(count: int, spatial: tuple[int, ...]) -> Tensor:
    chosen = torch.randperm(2 * math.prod(spatial))[:count]
    columns = []
    for size in reversed(spatial):
        columns.insert(0, chosen % size)
        chosen = chosen // size
    return torch.stack([chosen, *columns], 1).int()


def dense(features: Tensor, indices: Tensor, spatial: tuple[int, ...]) -> Tensor:
    out = torch.zeros(2, *spatial, features.shape[1])
    return out.index_put(tuple(indices.long().T), features).movedim(-1, 1)


@pytest.mark.parametrize("spatial", [(7, 6), (5, 6, 4)])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 1, 1), (2, 1, 1), (1, 0, 2), (2, 0, 1)])
def test_sparse_convolution(
    ops: ModuleType, spatial: tuple[int, ...], stride: int, padding: int, dilation: int
) -> None:
    n = len(spatial)
    if dilation == 2 and min(spatial) < 5:
        spatial = (5, 6, 5)
    convolve = (F.conv2d, F.conv3d)[n - 2]
    layer = (ops.SparseConv2d, ops.SparseConv3d)[n - 2](3, 4, 3, stride, padding, dilation, bias=True)
    indices, features = scattered(20, spatial), torch.randn(20, 3)
    leaves = features.clone().requires_grad_(), features.clone().requires_grad_()
    out = layer(ops.SparseConvTensor(leaves[0], indices, spatial, 2))
    weight = layer.weight.detach().clone().requires_grad_()
    kernel = weight.movedim((-1, -2), (0, 1))
    want = convolve(dense(leaves[1], indices, spatial), kernel, None, stride, padding, dilation)
    there = convolve(
        dense(torch.ones(20, 1), indices, spatial), torch.ones(1, 1, *[3] * n), None, stride, padding, dilation
    )
    assert out.indices.tolist() == torch.nonzero(there[:, 0] > 0).tolist()
    at = tuple(out.indices.long().T)
    expected = want.movedim(1, -1)[at] + layer.bias
    torch.testing.assert_close(out.features, expected, rtol=1e-4, atol=1e-4)
    weights = torch.randn_like(expected)
    for result in (out.features, expected):
        (result * weights).sum().backward()
    torch.testing.assert_close(leaves[0].grad, leaves[1].grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(layer.weight.grad, weight.grad, rtol=1e-4, atol=1e-4)


def test_submanifold_inverse_and_transposed_convolution(ops: ModuleType) -> None:
    spatial = (5, 6, 4)
    indices, features = scattered(30, spatial), torch.randn(30, 3)
    given = ops.SparseConvTensor(features, indices, spatial, 2)
    layer = ops.SubMConv3d(3, 4, 3, bias=False)
    want = F.conv3d(dense(features, indices, spatial), layer.weight.movedim((-1, -2), (0, 1)), padding=1)
    out = layer(given)
    assert torch.equal(out.indices, indices)
    torch.testing.assert_close(out.features, want.movedim(1, -1)[tuple(indices.long().T)], rtol=1e-4, atol=1e-4)

    down = ops.SparseConv3d(3, 4, 3, 2, 1, bias=False, indice_key="down")
    back = ops.SparseInverseConv3d(4, 3, 3, indice_key="down", bias=False)
    small = down(given)
    again = back(small)
    assert torch.equal(again.indices, indices)
    spread = F.conv_transpose3d(
        dense(small.features, small.indices, tuple(small.spatial_shape)),
        back.weight.movedim((-2, -1), (0, 1)),
        stride=2,
        padding=1,
        output_padding=(0, 1, 1),
    )
    torch.testing.assert_close(again.features, spread.movedim(1, -1)[tuple(indices.long().T)], rtol=1e-4, atol=1e-4)

    up = ops.SparseConvTranspose3d(3, 4, 3, 2, 1, bias=False)
    out = up(given)
    want = F.conv_transpose3d(
        dense(features, indices, spatial), up.weight.movedim((-2, -1), (0, 1)), stride=2, padding=1
    )
    assert tuple(out.spatial_shape) == tuple(want.shape[2:])
    torch.testing.assert_close(dense(out.features, out.indices, tuple(out.spatial_shape)), want, rtol=1e-4, atol=1e-4)


def test_sparse_maximum(ops: ModuleType) -> None:
    spatial = (6, 6, 4)
    indices, features = scattered(40, spatial), torch.rand(40, 3)
    pool = ops.SparseMaxPool3d(2, 2)
    leaves = features.clone().requires_grad_(), features.clone().requires_grad_()
    out = pool(ops.SparseConvTensor(leaves[0], indices, spatial, 2))
    want = F.max_pool3d(dense(leaves[1], indices, spatial), 2, 2).movedim(1, -1)[tuple(out.indices.long().T)]
    torch.testing.assert_close(out.features, want)
    for result in (out.features, want):
        result.square().sum().backward()
    torch.testing.assert_close(leaves[0].grad, leaves[1].grad)
