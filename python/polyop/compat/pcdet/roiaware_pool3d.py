# SPDX-License-Identifier: Apache-2.0
"""`pcdet.ops.roiaware_pool3d.roiaware_pool3d_cuda`."""

from __future__ import annotations

from torch import Tensor

from polyop import functional
from polyop.compat.mmcv_ext.points import find_pooled_points
from polyop.compat.mmcv_ext.points import roiaware_pool3d_backward as backward_of_pooling
from polyop.compat.pcdet._boxes import standing

__all__ = ["backward", "forward", "points_in_boxes_cpu", "points_in_boxes_gpu"]


def forward(
    rois: Tensor,
    pts: Tensor,
    pts_feature: Tensor,
    argmax: Tensor,
    pts_idx_of_voxels: Tensor,
    pooled_features: Tensor,
    pool_method: int,
) -> int:
    """pooled_features [N, x, y, z, C]: the maximum (pool_method 0) or the mean (1) of each cell's points. The first
    value of a cell in pts_idx_of_voxels is its number of points; the points' indices follow."""
    if pool_method not in (0, 1):
        raise ValueError(f"roiaware_pool3d: pool_method: expected 0 or 1, got {pool_method}")
    mode = ("max", "avg")[pool_method]
    boxes = standing(rois, 0)
    sizes, max_points = pooled_features.shape[1:4], pts_idx_of_voxels.shape[-1]
    features = pts_feature.detach()
    pooled_features.copy_(functional.roiaware_pool3d(boxes, pts, features, sizes, max_points, mode))
    find_pooled_points(boxes, pts, features, argmax, pts_idx_of_voxels, pooled_features, mode)
    return 1


def backward(pts_idx_of_voxels: Tensor, argmax: Tensor, grad_out: Tensor, grad_in: Tensor, pool_method: int) -> int:
    """Adds the gradient of the features to grad_in."""
    backward_of_pooling(pts_idx_of_voxels, argmax, grad_out, grad_in, pool_method)
    return 1


def points_in_boxes_gpu(boxes_tensor: Tensor, pts_tensor: Tensor, box_idx_of_points_tensor: Tensor) -> int:
    """The first box [B, N, 7] that contains each point [B, M, 3]. Other points keep their values."""
    found = functional.points_in_boxes_part(pts_tensor.contiguous(), standing(boxes_tensor))
    box_idx_of_points_tensor.copy_(found.where(found >= 0, box_idx_of_points_tensor))
    return 1


def points_in_boxes_cpu(boxes_tensor: Tensor, pts_tensor: Tensor, pts_indices_tensor: Tensor) -> int:
    """1 where a box [N, 7], with a margin of 0.01, contains a point [M, 3], else 0: [N, M]."""
    boxes = standing(boxes_tensor, 1e-2)
    pts_indices_tensor.copy_(functional.points_in_boxes_all(pts_tensor[None].contiguous(), boxes[None])[0].mT)
    return 1
