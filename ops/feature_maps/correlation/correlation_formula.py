# SPDX-License-Identifier: Apache-2.0
"""Correlation: the product with the displaced image for each displacement, summed over channels and windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1)


def _pair(values: Sequence[int]) -> Sequence[int]:
    """Returns two values; a single value applies to both axes."""
    return values if len(values) == 2 else (values[0], values[0])


def formula(
    input1: Tensor, input2: Tensor, *, kernel_size: Sequence[int], max_displacement: int, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], dilation_patch: Sequence[int],
) -> Tensor:  # fmt: skip
    height, width = input1.shape[2:]
    kernel_size, dilation_patch = _pair(kernel_size), _pair(dilation_patch)
    steps = range(2 * max_displacement + 1)
    reach_y, reach_x = (max_displacement * step for step in dilation_patch)
    padded = F.pad(input2, (reach_x, reach_x, reach_y, reach_y))
    products = [
        (input1 * padded[:, :, y : y + height, x : x + width]).sum(1, keepdim=True)
        for y in (i * dilation_patch[0] for i in steps)
        for x in (j * dilation_patch[1] for j in steps)
    ]
    ones = input1.new_ones(len(products), 1, *kernel_size)
    sums = F.conv2d(
        torch.cat(products, 1),
        ones,
        stride=_pair(stride),
        padding=_pair(padding),
        dilation=_pair(dilation),
        groups=len(products),
    )
    return sums.unflatten(1, (len(steps), len(steps)))


def example(call: Call, *, kernel_size: Sequence[int], dilation: Sequence[int], **_: Any) -> list[Tensor]:
    height, width = (4 + step * size for size, step in zip(_pair(kernel_size), _pair(dilation), strict=True))
    return [torch.rand(2, 3, height, width) for _ in range(2)]
