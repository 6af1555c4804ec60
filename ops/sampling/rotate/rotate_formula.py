# SPDX-License-Identifier: Apache-2.0
"""Rotates an image about a point by sampling it at a rotated grid."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1, 2)


def formula(img: Tensor, angle: Tensor, center: Tensor, *, interpolation: str) -> Tensor:
    dtype = torch.promote_types(img.dtype, torch.float32)
    height, width = img.shape[1:]
    x, y = center.to(dtype).unbind()
    radians = angle.to(dtype).reshape(()) * (-math.pi / 180)
    cosine, sine = torch.cos(radians), torch.sin(radians)
    u = torch.arange(width, dtype=dtype, device=img.device) + 0.5 - x
    v = (torch.arange(height, dtype=dtype, device=img.device) + 0.5 - y)[:, None]
    points = torch.stack(
        [(u * cosine + v * sine + x) * 2 / width - 1, (v * cosine - u * sine + y) * 2 / height - 1], -1
    )
    rotated = F.grid_sample(img.to(dtype)[None], points[None], interpolation, "zeros", align_corners=False)
    return rotated[0].to(img.dtype)


def example(call: Call, **_: object) -> list[Tensor]:
    return [torch.rand(3, 5, 6), torch.tensor(30.0), torch.tensor([2.0, 3.0])]
