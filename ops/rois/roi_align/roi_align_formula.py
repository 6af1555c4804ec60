# SPDX-License-Identifier: Apache-2.0
"""RoIAlign: bilinear samples of each bin, pooled."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.roi_bins_formula import pool_upright

DIFFERENTIABLE = (0,)


def formula(
    input: Tensor, rois: Tensor, *, output_height: int, output_width: int, spatial_scale: float, sampling_ratio: int,
    mode: str, aligned: int,
) -> Tensor:  # fmt: skip
    bins = (output_height, output_width)
    return pool_upright(input, rois[:, 0], rois[:, 1:] * spatial_scale, bins, sampling_ratio, mode, aligned)


def example(call: Call, **_: Any) -> list[Tensor]:
    return [torch.rand(2, 3, 6, 5), torch.tensor([[1.0, 1, 1, 4, 3], [0, 0, 2, 3, 6]])]


def body(
    call: Call,
    *,
    output_height: int,
    output_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    mode: str,
    aligned: int,
) -> str | None:
    if mode != "avg" or call.opset >= 22:
        return None  # ONNX Runtime's maximum is that of the weighted corners, and it has no RoiAlign-22 for CPUs
    where = "half_pixel" if aligned else "output_half_pixel"
    return f"""
        image_at = Constant <value = int64[1] {{0}}> ()
        images = Gather <axis = 1> (rois, image_at)
        one = Constant <value = int64[1] {{1}}> ()
        flat = Squeeze (images, one)
        image = Cast <to = 7> (flat)
        corners_at = Constant <value = int64[4] {{1, 2, 3, 4}}> ()
        corners = Gather <axis = 1> (rois, corners_at)
        output = RoiAlign <mode = "avg", coordinate_transformation_mode = "{where}", output_height = {output_height},
            output_width = {output_width}, spatial_scale: float = {spatial_scale!r}, sampling_ratio = {max(sampling_ratio, 0)}>
            (input, corners, image)
    """
