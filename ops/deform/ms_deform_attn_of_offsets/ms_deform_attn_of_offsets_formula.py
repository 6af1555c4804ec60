# SPDX-License-Identifier: Apache-2.0
"""Multi-scale deformable attention from offsets from reference points and from logits."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.deform_attn_formula import attend

DIFFERENTIABLE = (0, 2, 3, 4)


def formula(value: Tensor, shapes: Tensor, references: Tensor, offsets: Tensor, logits: Tensor) -> Tensor:
    images, queries, heads, samples = logits.shape
    levels, groups = shapes.shape[0], references.shape[3] // 2
    points = samples // levels
    number = torch.arange(points, device=value.device) % groups
    centre = references.reshape(images, queries, 1, 1, groups, 2).index_select(4, number)
    offset = offsets.reshape(images, queries, heads, levels, points, 2)
    x = centre[..., 0] * shapes[:, 1:] + offset[..., 0] - 0.5
    y = centre[..., 1] * shapes[:, :1] + offset[..., 1] - 0.5
    cells = shapes[:, 0] * shapes[:, 1]
    starts = torch.cumsum(cells, 0) - cells
    weights = torch.softmax(logits, -1).reshape(images, queries, heads, levels, points)
    return attend(value, shapes, starts, x, y, weights)


def example(call: Call) -> list[Tensor]:
    return [
        torch.rand(2, 26, 3, 4),
        torch.tensor([[4, 5], [2, 3]]),
        torch.rand(2, 7, 1, 4),
        torch.rand(2, 7, 3, 16) * 2 - 1,
        torch.rand(2, 7, 3, 8),
    ]
