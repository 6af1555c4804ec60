# SPDX-License-Identifier: Apache-2.0
"""RoIAlign between two Bezier curves: averages bilinear samples around points that lie between them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.roi_bins_formula import pool_free_bins

DIFFERENTIABLE = (0,)


def formula(
    input: Tensor, rois: Tensor, *, output_height: int, output_width: int, spatial_scale: float, sampling_ratio: int,
    aligned: int,
) -> Tensor:  # fmt: skip
    points = torch.stack([rois[:, 1::2], rois[:, 2::2]], 2) * spatial_scale
    upper, lower = points[:, :4], points[:, 4:].flip(1)
    size = torch.maximum((upper[:, 3] - upper[:, 0]).abs(), (lower[:, 3] - lower[:, 0]).abs())
    size = size if aligned else size.clamp(min=1)
    u = torch.arange(output_width, dtype=rois.dtype, device=rois.device) / output_width
    v = torch.arange(output_height, dtype=rois.dtype, device=rois.device)[:, None, None] / output_height
    cubic = torch.stack([(1 - u) ** 3, 3 * u * (1 - u) ** 2, 3 * u * u * (1 - u), u**3], 1)  # [columns, 4]
    above, below = (torch.matmul(cubic, curve)[:, None] for curve in (upper, lower))
    centre = above * (1 - v) + below * v - (0.5 if aligned else 0.0)
    bin_size = size / size.new_tensor((output_width, output_height))
    return pool_free_bins(input, rois[:, 0], centre, bin_size, sampling_ratio)


def example(call: Call, **_: Any) -> list[Tensor]:
    curves = torch.tensor([1.0, 1, 2, 3, 4, 2, 5, 1, 5, 4, 4, 5, 2, 6, 1, 4])
    return [torch.rand(2, 3, 6, 5), torch.stack([torch.cat([torch.tensor([p]), curves]) for p in (1.0, 0.0)])]
