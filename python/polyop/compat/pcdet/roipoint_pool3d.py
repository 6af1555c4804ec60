# SPDX-License-Identifier: Apache-2.0
"""`pcdet.ops.roipoint_pool3d.roipoint_pool3d_cuda`."""

from __future__ import annotations

from torch import Tensor

from polyop import functional
from polyop.compat.pcdet._boxes import standing

__all__ = ["forward"]


def forward(
    xyz: Tensor, boxes3d: Tensor, pts_feature: Tensor, pooled_features: Tensor, pooled_empty_flag: Tensor
) -> int:
    """The coordinates and features [B, M, samples, 3 + C] of the first points [B, N, 3] in each box [B, M, 7], repeated
    where there are fewer; pooled_empty_flag is 1 for boxes without points."""
    boxes = standing(boxes3d)
    features, empty = functional.roipoint_pool3d(
        xyz.detach(), pts_feature.detach(), boxes.detach(), pooled_features.shape[2]
    )
    pooled_features.copy_(features)
    pooled_empty_flag.copy_(empty)
    return 1
