# SPDX-License-Identifier: Apache-2.0
"""InternImage's deformable convolution."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.dcn_window_formula import out_size, sum_windows

DIFFERENTIABLE = (0, 1, 2)


def formula(input: Tensor, offset: Tensor, mask: Tensor, *, group: int, **window: Any) -> Tensor:
    number, oh, ow, samples = mask.shape
    points = samples // group
    offset = offset.reshape(number, oh, ow, group, points, 2)
    return sum_windows(input, offset, mask.reshape(number, oh, ow, group, points), group=group, **window)


def example(call: Call, **attributes: Any) -> list[Tensor]:
    height, width = (2 * attributes[f"dilation_{a}"] * attributes[f"kernel_{a}"] for a in "hw")
    oh, ow = out_size(attributes, height, width)
    groups = attributes["group"]
    samples = groups * (attributes["kernel_h"] * attributes["kernel_w"] - attributes["remove_center"])
    return [
        torch.rand(2, height, width, groups * attributes["group_channels"]),
        torch.rand(2, oh, ow, 2 * samples),
        torch.rand(2, oh, ow, samples),
    ]
