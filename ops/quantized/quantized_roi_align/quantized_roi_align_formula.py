# SPDX-License-Identifier: Apache-2.0
"""RoIAlign between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call, NoBodyError
from polyop.formulas.quantized_formula import body_around, dequantized, quantized
from polyop.formulas.roi_bins_formula import pool_upright


def formula(
    x: Tensor, rois: Tensor, batch_indices: Tensor, *, output_height: int, output_width: int, spatial_scale: float,
    sampling_ratio: int, mode: str, coordinate_transformation_mode: str, input_scale: float, input_zero_point: int,
    output_scale: float, output_zero_point: int,
) -> Tensor:  # fmt: skip
    bins, aligned = (output_height, output_width), coordinate_transformation_mode == "half_pixel"
    real = dequantized(x, input_scale, input_zero_point)
    pooled = pool_upright(real, batch_indices.float(), rois * spatial_scale, bins, sampling_ratio, mode, aligned)
    return quantized(pooled, x, output_scale, output_zero_point)


def example(call: Call, **_: Any) -> list[Tensor]:
    rois = torch.tensor([[1.0, 1, 4, 3], [0, 2, 3, 6]])
    return [torch.arange(180, dtype=torch.uint8).reshape(2, 3, 6, 5), rois, torch.tensor([1, 0])]


def body(
    call: Call, *, output_height: int, output_width: int, spatial_scale: float, sampling_ratio: int, mode: str,
    coordinate_transformation_mode: str, **quantization: Any,
) -> str:  # fmt: skip
    if mode != "avg":
        raise NoBodyError("ONNX Runtime's maximum is that of the weighted corners")
    if not 16 <= call.opset < 22:
        raise NoBodyError("ONNX Runtime has the RoiAlign of opsets 16 to 21 only")
    return body_around(
        call,
        "X",
        "Y",
        f"""
        result = RoiAlign <mode = "avg", coordinate_transformation_mode = "{coordinate_transformation_mode}",
            output_height = {output_height}, output_width = {output_width}, spatial_scale: float = {spatial_scale!r},
            sampling_ratio = {max(sampling_ratio, 0)}> (real, rois, batch_indices)
        """,
        **quantization,
    )
