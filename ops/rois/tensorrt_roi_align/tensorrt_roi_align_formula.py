# SPDX-License-Identifier: Apache-2.0
"""RoIAlign with the batch indices as a separate input and the maximum of weighted pixels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.roi_bins_formula import pool_upright

DIFFERENTIABLE = (0,)


def formula(
    x: Tensor, rois: Tensor, batch_indices: Tensor, *, coordinate_transformation_mode: str, mode: str, output_height: int,
    output_width: int, sampling_ratio: int, spatial_scale: float,
) -> Tensor:  # fmt: skip
    bins, aligned = (output_height, output_width), int(coordinate_transformation_mode == "half_pixel")
    corners = mode == "max"
    return pool_upright(x, batch_indices, rois * spatial_scale, bins, sampling_ratio, mode, aligned, corners)


def example(call: Call, **_: Any) -> list[Tensor]:
    return [
        torch.rand(2, 3, 6, 5),
        torch.tensor([[1.0, 1, 4, 3], [0, 2, 3, 6]]),
        torch.tensor([1, 0]),
    ]
