# SPDX-License-Identifier: Apache-2.0
"""Computes the number of each point's voxel, whose coordinates are digits of a mixed radix."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

_NO_VOXEL = -(2**63)


def formula(pos: Tensor, size: Tensor, start: Tensor | None, end: Tensor | None) -> Tensor:
    finite = torch.isfinite(pos)
    minimum, maximum = torch.where(finite, pos, torch.inf).amin(0), torch.where(finite, pos, -torch.inf).amax(0)
    if start is None:
        start = minimum if end is None else torch.minimum(minimum, end)
    if end is None:
        end = torch.maximum(maximum, start)
    counts = ((end - start) / size).long() + 1  # truncated
    dimension = torch.arange(pos.shape[1], device=pos.device)
    below = dimension < dimension[:, None]
    strides = torch.where(below, counts, 1).prod(1)
    at = (pos - start) / size
    known = finite.all(1) & (at.abs() < 2.0**62).all(1)
    return torch.where(known, (torch.where(known[:, None], at, 0).long() * strides).sum(1), _NO_VOXEL)


def example(call: Call) -> list[Tensor | None]:
    bounds = [torch.full((3,), float(i)) if call.has(name) else None for i, name in enumerate(("start", "end"))]
    return [torch.rand(9, 3), torch.rand(3) + 0.1, *bounds]
