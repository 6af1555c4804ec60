# SPDX-License-Identifier: Apache-2.0
"""The minimum-area rectangle around nine points, found among the rectangles along all pairs of points."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

_FIRST, _SECOND = zip(*((i, j) for i in range(9) for j in range(i + 1, 9)), strict=True)


def formula(pointsets: Tensor) -> Tensor:
    coordinates = pointsets.double().unflatten(1, (9, 2))
    origin = coordinates[:, :1]
    x, y = (coordinates - origin).unbind(2)
    first, second = (torch.tensor(points, device=x.device) for points in (_FIRST, _SECOND))
    across, down = x[:, second] - x[:, first], y[:, second] - y[:, first]  # [N, pair]
    # Rotated by right angles until cos > 0 and sin >= 0.
    as_is, back, around = (across > 0) & (down >= 0), (across <= 0) & (down > 0), (across < 0) & (down <= 0)
    cos = torch.where(as_is, across, torch.where(back, down, torch.where(around, -across, -down)))
    sin = torch.where(as_is, down, torch.where(back, -across, torch.where(around, -down, across)))
    cos, sin = torch.where(cos > 0, cos, 1), torch.where(cos > 0, sin, 0)
    square = cos * cos + sin * sin
    along = cos[..., None] * x[:, None] + sin[..., None] * y[:, None]
    normal = cos[..., None] * y[:, None] - sin[..., None] * x[:, None]
    sides = torch.stack([along.amin(2), along.amax(2), normal.amin(2), normal.amax(2), cos, sin, square], 2)
    area = (sides[..., 1] - sides[..., 0]) * (sides[..., 3] - sides[..., 2]) / square
    smallest = area <= area.amin(1, keepdim=True) * (1 + 1e-9)
    best = torch.where(smallest, sin / cos, torch.inf).argmin(1)
    low_x, high_x, low_y, high_y, cos, sin, square = sides.gather(1, best[:, None, None].expand(-1, 1, 7)).unbind(2)
    along = torch.cat([high_x, low_x, low_x, high_x], 1)
    normal = torch.cat([low_y, low_y, high_y, high_y], 1)
    corners = torch.stack([cos * along - sin * normal, sin * along + cos * normal], 2) / square[..., None] + origin
    finite = torch.isfinite(pointsets).all(1, keepdim=True)
    return torch.where(finite, corners.flatten(1), torch.nan).to(pointsets.dtype)


def example(call: Call) -> list[Tensor]:
    return [torch.rand(2, 18)]
