"""Multi-scale deformable attention: one table of the pixels of all levels, in which each sample's corners are rows."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.bilinear_formula import gather_corners

DIFFERENTIABLE = (0, 3, 4)


def formula(value: Tensor, shapes: Tensor, starts: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
    pictures, cells, heads, size = value.shape
    queries = locations.shape[1]
    height, width = shapes[:, :1], shapes[:, 1:]  # [L, 1], beside the points [N, Q, M, L, P]
    x = locations[..., 0] * width - 0.5
    y = locations[..., 1] * height - 0.5
    inside = (y > -1) & (y < height) & (x > -1) & (x < width)
    picture = torch.arange(pictures, device=value.device).reshape(pictures, 1, 1, 1, 1)
    head = torch.arange(heads, device=value.device).reshape(heads, 1, 1)
    rows = value.permute(0, 2, 1, 3).reshape(pictures * heads * cells, size)
    start = (picture * heads + head) * cells + starts[:, None]
    samples = gather_corners(rows, start, y, x, inside, height, width)
    return (samples * weights[..., None]).sum((3, 4)).reshape(pictures, queries, heads * size)


def example(call: Call) -> list[Tensor]:
    shapes = torch.tensor([[4, 5], [2, 3]])
    return [
        torch.rand(2, 26, 3, 4),
        shapes,
        torch.tensor([0, 20]),
        torch.rand(2, 7, 3, 2, 4, 2),
        torch.rand(2, 7, 3, 2, 4),
    ]
