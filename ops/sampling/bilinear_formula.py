# SPDX-License-Identifier: Apache-2.0
"""Bilinear samples of images, in torch.

Sizes are read from shapes and never written as -1, so that an exported formula is valid for any number of images and
points, including 0.
"""

from __future__ import annotations

import torch
from torch import Tensor


def bilinear(images: Tensor, index: Tensor, y: Tensor, x: Tensor, clamp: bool, largest: bool = False) -> Tensor:
    """Sample images [N, C, H, W] at y, x [...] of image index [...] -> [..., C].

    With `clamp`, a sample up to one pixel outside has the border's value (RoIAlign); else pixels outside are 0.
    `largest` returns the largest of the four weighted pixels instead of their sum.
    """
    number, channels, height, width = images.shape
    rows = images.permute(0, 2, 3, 1).reshape(number * height * width, channels)
    if clamp:
        inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
        y, x = y.clamp(0, height - 1), x.clamp(0, width - 1)
    else:
        inside = (y > -1) & (y < height) & (x > -1) & (x < width)
    return gather_corners(rows, index * (height * width), y, x, inside, height, width, largest)


def gather_corners(
    rows: Tensor, start: Tensor, y: Tensor, x: Tensor, inside: Tensor, height: Tensor | int, width: Tensor | int,
    largest: bool = False,
) -> Tensor:  # fmt: skip
    """Sample a table of pixels [P, C] in which an image of `height` x `width` begins at row `start` -> [..., C].

    Samples that are not `inside`, and corners outside of the image, are 0.
    """
    y, x = torch.where(inside, y, 0), torch.where(inside, x, 0)
    top, left = y.floor(), x.floor()
    combine = torch.maximum if largest else torch.add
    total = None
    for row, row_weight in ((top, top + 1 - y), (top + 1, y - top)):
        for column, column_weight in ((left, left + 1 - x), (left + 1, x - left)):
            there = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
            index = torch.where(there, start + row.long() * width + column.long(), 0)
            pixels = rows.index_select(0, index.flatten()).reshape(*index.shape, rows.shape[1])
            corner = torch.where(there[..., None], pixels * (row_weight * column_weight)[..., None], 0)
            total = corner if total is None else combine(total, corner)
    return total
