# SPDX-License-Identifier: Apache-2.0
"""Bilinear samples as in MMCV's kernels: the border's value up to one pixel outside, 0 beyond."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["bilinear", "corners"]


def corners(y: Tensor, x: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Returns the flat indices [..., 4] of the four pixels of each sample, and their weights [..., 4]."""
    inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
    rows, columns = [], []
    for position, size, ends in ((y, height, rows), (x, width, columns)):
        position = position.clamp(0, size - 1)
        low = position.floor()
        part = position - low
        low = torch.nan_to_num(low).long()
        ends += [(low, 1 - part), ((low + 1).clamp(max=size - 1), part)]
    pixels = torch.stack([row * width + column for row, _ in rows for column, _ in columns], -1)
    weights = torch.stack([of_row * of_column for _, of_row in rows for _, of_column in columns], -1)
    return pixels, torch.where(inside[..., None], weights, 0)


def bilinear(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Returns samples [C, ...] of an image [C, H, W] at y, x [...]."""
    pixels, weights = corners(y, x, *image.shape[1:])
    return (image.flatten(1)[:, pixels] * weights.to(image.dtype)).sum(-1)
