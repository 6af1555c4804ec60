# SPDX-License-Identifier: Apache-2.0
"""Sorts points into the cells of boxes and computes the sums or maxima of their features."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (2,)

_BEYOND = 2**31  # greater than every index of a point


def _cells(rois: Tensor, points: Tensor, out_size: Sequence[int]) -> Tensor:
    """Returns the cell of each point in each box, [R, N]; the number of cells for points outside."""
    box, at = rois.double()[:, None], points.double()[None]
    x, y, z = (at[..., i] - box[..., i] for i in range(3))
    cosine, sine = torch.cos(box[..., 6]), torch.sin(box[..., 6])
    position = torch.stack([x * cosine + y * sine, y * cosine - x * sine, z - box[..., 5] / 2], -1)
    size = box[..., 3:6]
    distance = position.abs()
    inside = (distance[..., :2] < size[..., :2] / 2).all(-1) & (distance[..., 2] <= size[..., 2] / 2)
    cells = size.new_tensor(out_size)
    cell = (position + size / 2) / (size / cells)
    cell = torch.where(cell > 0, cell, 0)  # also for NaN
    i, j, k = (torch.minimum(cell, cells - 1).long()[..., axis] for axis in range(3))
    number = (i * out_size[1] + j) * out_size[2] + k
    return torch.where(inside, number, out_size[0] * out_size[1] * out_size[2])


def formula(
    rois: Tensor, points: Tensor, features: Tensor, *, out_size: Sequence[int], max_pts_per_voxel: int, mode: str
) -> Tensor:
    count, max_points = out_size[0] * out_size[1] * out_size[2], max_pts_per_voxel - 1
    index = torch.arange(points.shape[0], device=points.device)
    key = (_cells(rois, points, out_size) * _BEYOND + index).sort(1).values  # by cell, then by index
    cell, point = key // _BEYOND, key % _BEYOND
    number = torch.zeros(rois.shape[0], count + 1, dtype=torch.long, device=rois.device)
    number = number.scatter_add(1, cell, torch.ones_like(cell))
    rank = index - (number.cumsum(1) - number).gather(1, cell)
    cell = torch.where(rank < max_points, cell, count)
    box = torch.arange(rois.shape[0], device=rois.device)[:, None]
    row, point = (box * (count + 1) + cell).flatten(), point.flatten()
    if not (rois.is_meta or torch.jit.is_tracing() or torch.compiler.is_compiling()):
        valid = (cell < count).flatten().nonzero()[:, 0]  # few of all points; a tracer cannot know their number
        row, point = row[valid], point[valid]
    values, row = features[point], row[:, None].expand(-1, features.shape[1])
    pooled = features.new_zeros(rois.shape[0] * (count + 1), features.shape[1])
    if mode == "avg":
        pooled = pooled.scatter_add(0, row, values)
        pooled = pooled / number.clamp(1, max(max_points, 1)).reshape(-1, 1).to(pooled)
    else:
        values = torch.where(values == values, values, -torch.inf)
        pooled = (pooled - torch.inf).scatter_reduce(0, row, values, "amax")
        pooled = torch.where(pooled > -torch.inf, pooled, 0)
    pooled = pooled.reshape(rois.shape[0], count + 1, features.shape[1])[:, :count]
    return pooled.reshape(rois.shape[0], *out_size, features.shape[1])


def example(call: Call, *, out_size: Sequence[int], max_pts_per_voxel: int, mode: str) -> list[Tensor]:
    return [torch.rand(2, 7), torch.rand(5, 3), torch.rand(5, 4)]
