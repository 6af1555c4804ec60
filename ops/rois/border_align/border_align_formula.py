# SPDX-License-Identifier: Apache-2.0
"""BorderAlign: the maximum of bilinear samples along the sides of boxes."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.bilinear_formula import bilinear

DIFFERENTIABLE = (0,)


def formula(input: Tensor, boxes: Tensor, *, pool_size: int) -> Tensor:
    number, channels, height, width = input.shape
    count = boxes.shape[1]
    x1, y1, x2, y2 = boxes.unsqueeze(-1).unbind(2)  # each [N, K, 1]
    part = torch.arange(pool_size + 1, dtype=boxes.dtype, device=boxes.device) / pool_size
    zero = part * 0
    sides = [
        (x1 + (x2 - x1) * part, y1 + zero),
        (x1 + zero, y1 + (y2 - y1) * part),
        (x2 - (x2 - x1) * part, y2 + zero),
        (x2 + zero, y2 - (y2 - y1) * part),
    ]
    finite = torch.isfinite(boxes).all(-1)[..., None, None]
    x, y = (torch.where(finite, torch.stack(points, 2), -2) for points in zip(*sides, strict=True))  # [N, K, 4, S]
    image = torch.arange(number * 4, device=input.device).reshape(number, 1, 4, 1).expand_as(x)
    samples = bilinear(input.reshape(number * 4, channels // 4, height, width), image, y, x, clamp=True)
    largest = torch.where(samples == samples, samples, -torch.inf).amax(3)
    largest = torch.where(largest > -torch.inf, largest, 0)
    return largest.permute(0, 3, 1, 2).reshape(number, channels // 4, count, 4)


def example(call: Call, *, pool_size: int) -> list[Tensor]:
    return [torch.rand(2, 12, 6, 5), torch.rand(2, 7, 4) * 5]
