# SPDX-License-Identifier: Apache-2.0
"""Deformable attention: each sample gathers its corners as rows of a table of the pixels of all levels."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas.bilinear_formula import gather_corners


def attend(value: Tensor, shapes: Tensor, starts: Tensor, x: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    """value [N, S, M, D], shapes [L, 2], starts [L], x, y (pixels) and weights [N, Q, M, L, P] -> [N, Q, M, D]."""
    images, cells, heads, size = value.shape
    height, width = shapes[:, :1], shapes[:, 1:]  # [L, 1], broadcast over the points
    inside = (y > -1) & (y < height) & (x > -1) & (x < width)
    image = torch.arange(images, device=value.device).reshape(images, 1, 1, 1, 1)
    head = torch.arange(heads, device=value.device).reshape(heads, 1, 1)
    rows = value.permute(0, 2, 1, 3).reshape(images * heads * cells, size)
    samples = gather_corners(rows, (image * heads + head) * cells + starts[:, None], y, x, inside, height, width)
    return (samples * weights[..., None]).sum((3, 4))


def attend_at_locations(value: Tensor, shapes: Tensor, starts: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
    """Attend at normalised locations [N, Q, M, L, P, 2], which are 0 to 1 across a level."""
    x = locations[..., 0] * shapes[:, 1:] - 0.5
    y = locations[..., 1] * shapes[:, :1] - 0.5
    return attend(value, shapes, starts, x, y, weights)


def example_at_locations() -> list[Tensor]:
    return [
        torch.rand(2, 26, 3, 4),
        torch.tensor([[4, 5], [2, 3]]),
        torch.tensor([0, 20]),
        torch.rand(2, 7, 3, 2, 4, 2),
        torch.rand(2, 7, 3, 2, 4),
    ]
