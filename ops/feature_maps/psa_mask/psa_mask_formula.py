# SPDX-License-Identifier: Apache-2.0
"""Point-wise spatial attention: gathers, for each pair of pixels, the element of one pixel's mask for the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0,)


def formula(input: Tensor, *, psa_type: str, mask_size: Sequence[int]) -> Tensor:
    rows, columns = (*mask_size, *mask_size)[:2]
    number, channels, height, width = input.shape
    pixels = height * width
    y = torch.arange(height, device=input.device).reshape(height, 1).expand(height, width).reshape(pixels)
    x = torch.arange(width, device=input.device).expand(height, width).reshape(pixels)
    i, j = y[:, None] - y + rows // 2, x[:, None] - x + columns // 2  # [about, of]
    in_mask = (i >= 0) & (i < rows) & (j >= 0) & (j < columns)
    index = torch.where(in_mask, i * columns + j, 0).expand(number, pixels, pixels)
    spread = torch.where(in_mask, input.reshape(number, channels, pixels).gather(1, index), 0)
    if psa_type == "distribute":
        spread = spread.transpose(1, 2)
    return spread.reshape(number, pixels, height, width)


def example(call: Call, *, mask_size: Sequence[int], **_: Any) -> list[Tensor]:
    rows, columns = (*mask_size, *mask_size)[:2]
    return [torch.rand(2, rows * columns, 4, 5)]
