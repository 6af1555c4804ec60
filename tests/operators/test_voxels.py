# SPDX-License-Identifier: Apache-2.0
"""The functions of voxels, compared with formulations in torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import polyop
import polyop.compat.mmcv as mmcv_ops

SIZE, RANGE, CELLS = [0.5, 0.25, 1.0], [-2.0, -1.0, -1.0, 2.0, 1.0, 1.0], [8, 8, 2]


@pytest.fixture
def points() -> Tensor:
    torch.manual_seed(0)
    return torch.rand(900, 4) * 5 - 2.5


def cells_of(points: Tensor) -> Tensor:
    """Returns (z, y, x) of each point, or -1."""
    cell = ((points[:, :3] - torch.tensor(RANGE[:3])) / torch.tensor(SIZE)).floor()
    inside = ((cell >= 0) & (cell < torch.tensor(CELLS))).all(1, keepdim=True)
    return torch.where(inside, cell, -1).int().flip(1)


@pytest.mark.parametrize(("max_points", "max_voxels"), [(3, 500), (100, 20), (1, 1)])
def test_hard_voxelization(points: Tensor, max_points: int, max_voxels: int) -> None:
    members: dict[tuple[int, ...], list[int]] = {}
    for i, cell in enumerate(map(tuple, cells_of(points).tolist())):
        if cell[0] >= 0 and (cell in members or len(members) < max_voxels):
            members.setdefault(cell, []).append(i)
    want = torch.zeros(len(members), max_points, 4)
    for row, mine in zip(want, members.values(), strict=True):
        kept = points[mine[:max_points]]
        row[: len(kept)] = kept
    layer = mmcv_ops.Voxelization(SIZE, RANGE, max_points, (max_voxels, 1)).train()
    for voxels, coors, counts in (polyop.voxelization(points, SIZE, RANGE, max_points, max_voxels), layer(points)):
        assert torch.equal(voxels, want)
        assert coors.tolist() == [list(cell) for cell in members]
        assert counts.tolist() == [min(len(mine), max_points) for mine in members.values()]
    assert layer.eval()(points)[0].shape[0] == 1
    assert layer.grid_size.tolist() == CELLS
    assert layer.pcd_shape == [1, 8, 8]


def test_dynamic_voxelization(points: Tensor) -> None:
    assert torch.equal(polyop.voxelization(points, SIZE, RANGE, -1), cells_of(points))
    assert torch.equal(mmcv_ops.Voxelization(SIZE, RANGE, -1)(points), cells_of(points))


@pytest.mark.parametrize("images", [0, 2])
@pytest.mark.parametrize("reduce", ["max", "mean", "sum"])
def test_dynamic_scatter(points: Tensor, reduce: str, images: int) -> None:
    feats, coors = torch.randn(900, 7), cells_of(points)
    if images:
        coors = torch.cat([torch.randint(0, images, (900, 1)).int(), coors], 1)
    inside = (coors >= 0).all(1)
    cells, row_of, counts = torch.unique(coors[inside], dim=0, return_inverse=True, return_counts=True)
    rows = [feats[inside][row_of == v] for v in range(len(cells))]
    want = torch.stack([r.amax(0) if reduce == "max" else getattr(r, reduce)(0) for r in rows])
    reduced, voxels, point2voxel, sizes = polyop.dynamic_scatter(feats, coors, reduce)
    torch.testing.assert_close(reduced, want)
    assert torch.equal(voxels, cells)
    assert torch.equal(point2voxel[inside], row_of.int())
    assert (point2voxel[~inside] == -1).all()
    assert torch.equal(sizes, counts.int())
    if reduce != "sum":
        layer = mmcv_ops.DynamicScatter(SIZE, RANGE, average_points=reduce == "mean")
        assert all(torch.equal(a, b) for a, b in zip(layer(feats, coors), (reduced, voxels), strict=True))


@pytest.mark.parametrize("reduce", ["sum", "mean", "min", "max"])
def test_segment_csr(reduce: str) -> None:
    src, indptr = torch.randn(50, 9), torch.tensor([0, 4, 5, 30, 50])
    want = torch.segment_reduce(src, reduce, offsets=indptr, axis=0)
    torch.testing.assert_close(polyop.segment_csr(src, indptr, reduce), want)


def test_gradients_reach_points_through_voxels(points: Tensor) -> None:
    """The mean of a voxel's points passes each of them its share."""
    feats, coors = torch.zeros(900, 2, requires_grad=True), cells_of(points)
    reduced, _, point2voxel, counts = polyop.dynamic_scatter(feats, coors, "mean")
    reduced.sum().backward()
    share = torch.where(point2voxel >= 0, 1 / counts[point2voxel.long()], 0)
    torch.testing.assert_close(feats.grad, share[:, None].expand(-1, 2))
