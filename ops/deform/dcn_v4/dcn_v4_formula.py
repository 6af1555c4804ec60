# SPDX-License-Identifier: Apache-2.0
"""Like dcn_v3, with offsets and masks packed into one tensor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.dcn_window_formula import out_size, sum_windows

DIFFERENTIABLE = (0, 1)


def _points(window: dict[str, int]) -> int:
    return window["kernel_h"] * window["kernel_w"] - window["remove_center"]


def formula(input: Tensor, offset_mask: Tensor, *, group: int, **window: Any) -> Tensor:
    points = _points(window)
    number, oh, ow, _ = offset_mask.shape
    groups = offset_mask[..., : 3 * group * points].reshape(number, oh, ow, group, 3 * points)
    offset = groups[..., : 2 * points].reshape(number, oh, ow, group, points, 2)
    return sum_windows(input, offset, groups[..., 2 * points :], group=group, **window)


def example(call: Call, **attributes: Any) -> list[Tensor]:
    height, width = (2 * attributes[f"dilation_{a}"] * attributes[f"kernel_{a}"] for a in "hw")
    groups = attributes["group"]
    row = -(-3 * groups * _points(attributes) // 8) * 8
    return [
        torch.rand(2, height, width, groups * attributes["group_channels"]),
        torch.rand(2, *out_size(attributes, height, width), row),
    ]
