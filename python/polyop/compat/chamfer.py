# SPDX-License-Identifier: Apache-2.0
"""`chamfer`, the compiled part of GRNet, PoinTr and others, also on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop import functional
from polyop.compat.mmcv_ext import losses

__all__ = ["backward", "forward"]


def forward(xyz1: Tensor, xyz2: Tensor) -> list[Tensor]:
    """Clouds [B, N, 3] and [B, M, 3] -> the squared distances of the points to the nearest one of the other cloud, [B,
    N] and [B, M], and the indices of those."""
    return list(functional.chamfer_distance(xyz1, xyz2))


def backward(
    xyz1: Tensor, xyz2: Tensor, idx1: Tensor, idx2: Tensor, grad_dist1: Tensor, grad_dist2: Tensor
) -> list[Tensor]:
    """Returns the gradients of both clouds."""
    grads = [torch.zeros_like(xyz1), torch.zeros_like(xyz2)]
    losses.chamfer_distance_backward(xyz1, xyz2, idx1, idx2, grad_dist1, grad_dist2, *grads)
    return grads
