"""Bilinear samples as MMCV's kernels take them: 0 beyond one pixel outside, the border's value up to there."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["bilinear", "corners"]


def corners(y: Tensor, x: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """The four pixels of each sample, as numbers in a picture [..., 4], and their weights [..., 4]."""
    inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
    rows, columns = [], []
    for position, size, places in ((y, height, rows), (x, width, columns)):
        position = position.clamp(0, size - 1)
        low = position.floor()
        part = position - low
        low = torch.nan_to_num(low).long()
        places += [(low, 1 - part), ((low + 1).clamp(max=size - 1), part)]
    pixels = torch.stack([row * width + column for row, _ in rows for column, _ in columns], -1)
    weights = torch.stack([of_row * of_column for _, of_row in rows for _, of_column in columns], -1)
    return pixels, torch.where(inside[..., None], weights, 0)


def bilinear(picture: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Samples [C, ...] of a picture [C, H, W] at y, x [...]."""
    pixels, weights = corners(y, x, *picture.shape[1:])
    return (picture.flatten(1)[:, pixels] * weights.to(picture.dtype)).sum(-1)
