# SPDX-License-Identifier: Apache-2.0
"""Points in polygons: counts the sides that a ray from each point to the right crosses."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call


def formula(points: Tensor, polygons: Tensor) -> Tensor:
    ax, ay = polygons[None, :, 0::2].double(), polygons[None, :, 1::2].double()
    bx, by = (torch.cat([a[..., 1:], a[..., :1]], -1) for a in (ax, ay))
    px, py = (v[:, None, None] for v in points.double().unbind(1))
    side = (bx - ax) * (py - ay) - (by - ay) * (px - ax)
    up, down = (ay <= py) & (by > py), (ay > py) & (by <= py)
    crossed = (up & (side > 0)) | (down & (side < 0))
    on_side = (side == 0) & (torch.minimum(ax, bx) <= px) & (px <= torch.maximum(ax, bx))
    on_side = on_side & (torch.minimum(ay, by) <= py) & (py <= torch.maximum(ay, by))
    finite = torch.isfinite(points).all(1)[:, None] & torch.isfinite(polygons).all(1)
    # With huge coordinates the sides are not decisive.
    within = finite & (ax.amin(-1) < px[..., 0]) & (px[..., 0] < ax.amax(-1))
    within = within & (ay.amin(-1) < py[..., 0]) & (py[..., 0] < ay.amax(-1))
    return ((crossed.int().sum(-1) % 2 == 1) & ~on_side.any(-1) & within).int()


def example(call: Call) -> list[Tensor]:
    return [torch.rand(5, 2), torch.rand(3, 8)]
