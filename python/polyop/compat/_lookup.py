# SPDX-License-Identifier: Apache-2.0
"""Windows of values at fractional positions: the reading of correlation volumes in RAFT."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["blend", "spread", "window"]

_FAR = 1 << 20  # pixels; everything farther is outside as well


def window(at: Tensor, radius: int, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the 2 * radius + 2 pixels around each position, [..., K], whether they are inside of `size` pixels, and
    the fraction [...]. NaN is outside."""
    at = at.nan_to_num(-_FAR, -_FAR, -_FAR).clamp(-_FAR, _FAR)
    floor = at.floor()
    pixel = floor.long()[..., None] + torch.arange(-radius, radius + 2, device=at.device)
    return pixel.clamp(0, size - 1), (pixel >= 0) & (pixel < size), at - floor


def blend(values: Tensor, fraction: Tensor, dim: int) -> Tensor:
    """Interpolates neighbours along a dimension of K values: K - 1 results."""
    before = (slice(None),) * dim  # not `narrow`, whose length the older exporter does not know
    left, right = (*before, slice(None, -1)), (*before, slice(1, None))
    return values[left] * (1 - fraction) + values[right] * fraction


def spread(grad: Tensor, fraction: Tensor, dim: int) -> Tensor:
    """The gradient of `blend`."""
    zero = torch.zeros_like(grad.narrow(dim, 0, 1))
    return torch.cat([grad * (1 - fraction), zero], dim) + torch.cat([zero, grad * fraction], dim)
