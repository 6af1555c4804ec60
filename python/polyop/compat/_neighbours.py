# SPDX-License-Identifier: Apache-2.0
"""Nearest neighbours of batches of clouds, for packages with different layouts."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.compat.torch_cluster.knn import knn_in_clouds

__all__ = ["nearest_of_batch", "nearest_of_rows"]


def nearest_of_rows(x: Tensor, y: Tensor, k: int, ends_x: Tensor, ends_y: Tensor) -> Tensor:
    """Returns the indices [M, k] of the points of x [N, F] nearest to each of y [M, F], nearest first, -1 where the
    cloud has fewer. Clouds end at ends_x and ends_y, from 0 on."""
    rows, found = knn_in_clouds(x.detach(), y.detach(), k, ends_x.cpu(), ends_y.cpu(), False)
    result = torch.full((y.shape[0], k), -1, dtype=torch.long, device=y.device)
    result[rows, torch.arange(rows.numel(), device=rows.device) - torch.searchsorted(rows, rows)] = found
    return result


def nearest_of_batch(x: Tensor, y: Tensor, k: int) -> Tensor:
    """Returns the indices [B, M, k] of the points of x [B, N, F] nearest to each of y [B, M, F]."""
    if x.dim() != 3 or y.dim() != 3 or x.shape[0] != y.shape[0] or x.shape[2] != y.shape[2]:
        raise ValueError(f"expected clouds [B, N, F] and [B, M, F], got {list(x.shape)} and {list(y.shape)}")
    if not 1 <= k <= x.shape[1]:
        raise ValueError(f"k: expected 1 to {x.shape[1]}, the number of points, got {k}")
    ends_x, ends_y = (torch.arange(x.shape[0] + 1) * t.shape[1] for t in (x, y))
    found = nearest_of_rows(x.flatten(0, 1), y.flatten(0, 1), k, ends_x, ends_y).view(*y.shape[:2], k)
    return found - ends_x[:-1, None, None].to(found.device)
