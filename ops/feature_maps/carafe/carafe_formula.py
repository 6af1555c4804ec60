# SPDX-License-Identifier: Apache-2.0
"""CARAFE: for each position of the window, the shifted image times its masks, summed."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1)


def formula(features: Tensor, masks: Tensor, *, kernel_size: int, group_size: int, scale_factor: float) -> Tensor:
    number, channels, height, width = features.shape
    scale, half, each = int(scale_factor), kernel_size // 2, channels // group_size
    padded = torch.nn.functional.pad(features, (half, half, half, half))
    weights = masks.reshape(number, group_size, kernel_size * kernel_size, 1, height, scale, width, scale)
    total: Tensor | int = 0
    for y in range(kernel_size):
        for x in range(kernel_size):
            shifted = padded[:, :, y : y + height, x : x + width]
            shifted = shifted.reshape(number, group_size, each, height, 1, width, 1)
            total = total + shifted * weights[:, :, y * kernel_size + x]
    return total.reshape(number, channels, height * scale, width * scale)


def example(call: Call, *, kernel_size: int, group_size: int, scale_factor: float) -> list[Tensor]:
    scale = int(scale_factor)
    return [
        torch.rand(2, 3 * group_size, 4, 5),
        torch.rand(2, kernel_size * kernel_size * group_size, 4 * scale, 5 * scale),
    ]
