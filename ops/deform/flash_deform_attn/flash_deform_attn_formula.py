# SPDX-License-Identifier: Apache-2.0
"""Multi-scale deformable attention with packed locations and logits."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.deform_attn_formula import attend_at_locations

DIFFERENTIABLE = (0, 3)


def formula(value: Tensor, shapes: Tensor, starts: Tensor, loc_attn: Tensor, *, points: int) -> Tensor:
    images, queries, heads, row = loc_attn.shape
    levels, samples = shapes.shape[0], row // 3
    locations = loc_attn[..., : 2 * samples].reshape(images, queries, heads, levels, points, 2)
    weights = torch.softmax(loc_attn[..., 2 * samples :], -1).reshape(images, queries, heads, levels, points)
    gathered = attend_at_locations(value, shapes, starts, locations, weights)
    return gathered.reshape(images, queries, heads * value.shape[3])


def example(call: Call, *, points: int) -> list[Tensor]:
    shapes = torch.tensor([[4, 5], [2, 3]])
    return [torch.rand(2, 26, 3, 4), shapes, torch.tensor([0, 20]), torch.rand(2, 7, 3, 2 * points * 3)]
