# SPDX-License-Identifier: Apache-2.0
"""RoIAlign of rotated boxes: averages bilinear samples of each bin, along the axes of the box."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.roi_bins_formula import pool_rotated

DIFFERENTIABLE = (0,)


def formula(
    input: Tensor, rois: Tensor, *, output_height: int, output_width: int, spatial_scale: float, sampling_ratio: int,
    aligned: int, clockwise: int,
) -> Tensor:  # fmt: skip
    boxes = torch.cat([rois[:, 1:5] * spatial_scale, rois[:, 5:]], 1)
    return pool_rotated(input, rois[:, 0], boxes, (output_height, output_width), sampling_ratio, aligned, clockwise)


def example(call: Call, **_: Any) -> list[Tensor]:
    return [torch.rand(2, 3, 6, 5), torch.tensor([[1.0, 2, 3, 4, 3, 0.5], [0, 1, 2, 3, 6, -1]])]
