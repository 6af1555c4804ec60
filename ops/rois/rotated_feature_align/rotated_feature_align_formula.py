# SPDX-License-Identifier: Apache-2.0
"""Adds to the features their bilinear samples at each pixel's rotated box."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.bilinear_formula import bilinear

DIFFERENTIABLE = (0,)


def formula(features: Tensor, best_bboxes: Tensor, *, spatial_scale: float, points: int) -> Tensor:
    number = features.shape[0]
    box = best_bboxes * spatial_scale
    angle = best_bboxes[..., 4]
    y, x = box[..., 0], box[..., 1]
    cosine, sine = torch.cos(angle) / 2, torch.sin(angle) / 2
    along_x, along_y = cosine * box[..., 2], sine * box[..., 2]
    across_x, across_y = -sine * box[..., 3], cosine * box[..., 3]
    at = [(y, x)]
    if points == 5:
        at += [(y + i * along_y + j * across_y, x + i * along_x + j * across_x) for i in (1, -1) for j in (1, -1)]
    finite = torch.isfinite(best_bboxes).all(-1)
    y = torch.where(finite, torch.stack([p[0] for p in at]), -2)  # outside
    x = torch.where(finite, torch.stack([p[1] for p in at]), -2)
    image = torch.arange(number, device=features.device).reshape(number, 1, 1).expand_as(y)
    return features + bilinear(features, image, y, x, clamp=True).sum(0).permute(0, 3, 1, 2)


def example(call: Call, **_: Any) -> list[Tensor]:
    return [torch.rand(2, 3, 6, 5), torch.rand(2, 6, 5, 5) * 5]
