# SPDX-License-Identifier: Apache-2.0
"""The lookup: the pixels of the window, gathered, and blended along both axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0,)

_FAR = 2.0**40


def _window(at: Tensor, radius: int, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the 2 * radius + 2 pixels around each position, [..., K], whether they are inside, and the fraction."""
    near = at.abs() < _FAR  # false for NaN
    at = torch.where(near, at, 0)
    floor = at.floor()
    pixel = floor.to(torch.int64).unsqueeze(-1) + torch.arange(-radius, radius + 2, device=at.device)
    return pixel, (pixel >= 0) & (pixel < size) & near.unsqueeze(-1), at - floor


def formula(volume: Tensor, coords: Tensor, *, radius: Sequence[int]) -> Tensor:
    n, height, width, rows, columns = volume.shape
    down, across = radius if len(radius) == 2 else (radius[0], radius[0])
    x, x_inside, right = _window(coords[:, 0], across, columns)
    y, y_inside, below = _window(coords[:, 1], down, rows)
    inside = x_inside.unsqueeze(4) & y_inside.unsqueeze(3)  # [N, H, W, x, y]
    index = torch.where(inside, y.unsqueeze(3) * columns + x.unsqueeze(4), rows * columns)
    values = torch.nn.functional.pad(volume.reshape(n, height, width, rows * columns), (0, 1))  # a zero for the outside
    values = values.gather(3, index.flatten(3)).reshape(index.shape)
    values = values if values.dtype == torch.float64 else values.to(torch.float32)
    right, below = (fraction.to(values.dtype).reshape(n, height, width, 1, 1) for fraction in (right, below))
    values = values[..., :-1] * (1 - below) + values[..., 1:] * below
    values = values[:, :, :, :-1] * (1 - right) + values[:, :, :, 1:] * right
    return values.flatten(3).permute(0, 3, 1, 2).to(volume.dtype)


def example(call: Call, **_: Any) -> list[Tensor]:
    return [torch.rand(2, 3, 4, 5, 6), torch.rand(2, 2, 3, 4) * 5]
