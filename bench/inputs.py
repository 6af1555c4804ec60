# SPDX-License-Identifier: Apache-2.0
"""Inputs of cases: random ones, images of n pixels, and clouds of n points."""

from __future__ import annotations

import torch
from torch import Tensor

MILLION = 1_000_000
PIXELS = 8192 * 8192
POINTS = 10 * MILLION


def uniform(*shape: int, low: float = 0, high: float = 1) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(1)) * (high - low) + low


def gaussian(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(2))


def integers(limit: int, *shape: int) -> Tensor:
    return torch.randint(limit, shape, generator=torch.Generator().manual_seed(3), dtype=torch.int32)


def scores(*shape: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(4))


def side_of(n: int) -> int:
    """Returns the side of a square of about n."""
    return max(1, round(n**0.5))


def image(n: int, channels: int = 4) -> Tensor:
    side = side_of(n)
    return gaussian(1, channels, side, side)


def street(n: int, dims: int = 3) -> Tensor:
    """Returns points of a street whose ground grows with their number."""
    side = 0.1 * n**0.5
    return uniform(n, dims) * torch.tensor([side, side, 3.0, 1.0][:dims])


def streets(n: int) -> Tensor:
    """Returns a batch of one street."""
    return street(n)[None].contiguous()


def quarter(n: int) -> Tensor:
    """Returns every fourth point of the street."""
    return street(n)[::4].contiguous()


def ends(n: int) -> Tensor:
    return torch.tensor([n], dtype=torch.int32)


def clouds(count: int, number: int = 4) -> Tensor:
    """Returns clouds of as many points, on torch's default device."""
    return torch.rand(number, count, 3) * torch.tensor([40.0, 40, 3])
