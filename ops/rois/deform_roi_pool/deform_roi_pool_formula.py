# SPDX-License-Identifier: Apache-2.0
"""Deformable RoI pooling: averages bilinear samples of each bin, shifted by its offset."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.roi_bins_formula import pool_upright

DIFFERENTIABLE = (0, 2)


def formula(
    input: Tensor, rois: Tensor, offset: Tensor | None = None, *, pooled_height: int, pooled_width: int,
    spatial_scale: float, sampling_ratio: float, gamma: float,
) -> Tensor:  # fmt: skip
    corners = rois[:, 1:] * spatial_scale
    shift = None
    if offset is not None:
        shift = gamma * (corners[:, 2:] - corners[:, :2])[:, :, None, None] * offset
    bins = (pooled_height, pooled_width)
    return pool_upright(input, rois[:, 0], corners, bins, int(sampling_ratio), "avg", 1, shift=shift)


def example(call: Call, *, pooled_height: int, pooled_width: int, **_: Any) -> list[Tensor]:
    tensors = [torch.rand(2, 3, 6, 5), torch.tensor([[1.0, 1, 1, 4, 3], [0, 0, 2, 3, 6]])]
    return [*tensors, torch.rand(2, 2, pooled_height, pooled_width)] if call.has("offset") else tensors
