# SPDX-License-Identifier: Apache-2.0
"""Chamfer distances: compares all pairs, then computes the distances of the nearest ones again for the gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1)


def _nearest(own: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    known = torch.isfinite(own).all(2)[:, :, None] & torch.isfinite(other).all(2)[:, None]  # [B, N, M]
    own, other = (torch.where(torch.isfinite(t), t, 0).double() for t in (own, other))
    pairs = ((own.detach()[:, :, None] - other.detach()[:, None]) ** 2).sum(3)
    index = torch.where(known, pairs, torch.inf).argmin(2, keepdim=True)
    near = other.gather(1, index.expand(-1, -1, other.shape[2]))
    squared = torch.where(known.gather(2, index)[..., 0], ((own - near) ** 2).sum(2), torch.inf)
    return squared, index[..., 0].int()


def formula(xyz1: Tensor, xyz2: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    dist1, idx1 = _nearest(xyz1, xyz2)
    dist2, idx2 = _nearest(xyz2, xyz1)
    return dist1.to(xyz1.dtype), dist2.to(xyz1.dtype), idx1, idx2


def example(call: Call) -> list[Tensor]:
    return [torch.rand(2, 4, 2), torch.rand(2, 5, 2)]
