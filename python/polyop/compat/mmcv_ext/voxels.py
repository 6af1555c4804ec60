# SPDX-License-Identifier: Apache-2.0
"""Voxels of point clouds."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop import functional
from polyop.compat.mmcv_ext._registry import provides


@provides("dynamic_voxelize")
def dynamic_voxelize_forward(points: Tensor, voxel_size: Tensor, coors_range: Tensor, coors: Tensor, NDim: int) -> None:
    del NDim
    coors.copy_(functional.voxelization(points, voxel_size.tolist(), coors_range.tolist(), -1, -1))


@provides("hard_voxelize")
def hard_voxelize_forward(
    points: Tensor,
    voxel_size: Tensor,
    coors_range: Tensor,
    voxels: Tensor,
    coors: Tensor,
    num_points_per_voxel: Tensor,
    voxel_num: Tensor,
    max_points: int,
    max_voxels: int,
    NDim: int,
    deterministic: bool,
) -> None:
    """Always deterministic."""
    del NDim, deterministic
    result = functional.voxelization(points, voxel_size.tolist(), coors_range.tolist(), max_points, max_voxels)
    voxel_num.fill_(len(result[0]))
    for to, rows in zip((voxels, coors, num_points_per_voxel), result, strict=True):
        to[: len(rows)] = rows


@provides("dynamic_scatter")
def dynamic_point_to_voxel_forward(
    feats: Tensor, coors: Tensor, reduce_type: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return functional.dynamic_scatter(feats, coors, reduce_type)


@provides()
def dynamic_point_to_voxel_backward(
    grad_feats: Tensor,
    grad_reduced_feats: Tensor,
    feats: Tensor,
    reduced_feats: Tensor,
    coors_idx: Tensor,
    reduce_count: Tensor,
    reduce_type: str,
) -> None:
    """The first point with the maximum gets its gradient."""
    of_points = torch.nonzero(coors_idx >= 0).squeeze(1)
    voxels = coors_idx[of_points].long()
    if reduce_type == "max":
        equal = feats[of_points] == reduced_feats[voxels]
        numbered = torch.where(equal, of_points[:, None], len(feats))
        first = torch.full_like(reduced_feats, len(feats), dtype=torch.int64)
        first.scatter_reduce_(0, voxels[:, None].expand_as(numbered), numbered, "amin")
        padded = torch.cat([grad_feats, grad_feats.new_zeros(1, grad_feats.shape[1])])
        grad_feats.copy_(padded.scatter_(0, first, grad_reduced_feats)[:-1])
        return
    divisor = reduce_count[voxels, None].to(feats) if reduce_type == "mean" else 1
    grad_feats[of_points] = grad_reduced_feats[voxels] / divisor
