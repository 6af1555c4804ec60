# SPDX-License-Identifier: Apache-2.0
"""Grid sampling between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from polyop.formulas import Call, NoBodyError
from polyop.formulas.quantized_formula import body_around, dequantized, quantized


def formula(
    input: Tensor, grid: Tensor, *, interpolation_mode: str, padding_mode: str, align_corners: int, input_scale: float,
    input_zero_point: int, output_scale: float, output_zero_point: int,
) -> Tensor:  # fmt: skip
    real = dequantized(input, input_scale, input_zero_point)
    sampled = F.grid_sample(real, grid, interpolation_mode, padding_mode, bool(align_corners))
    return quantized(sampled, input, output_scale, output_zero_point)


def body(call: Call, *, interpolation_mode: str, padding_mode: str, align_corners: int, **quantization: Any) -> str:
    if call.ranks[0] == 5 and call.opset < 20:
        raise NoBodyError("ONNX samples volumes from opset 20 on")
    renamed = {"bilinear": "linear", "bicubic": "cubic"} if call.opset >= 20 else {}
    return body_around(
        call,
        "input",
        "output",
        f"""
        result = GridSample <mode = "{renamed.get(interpolation_mode, interpolation_mode)}",
            padding_mode = "{padding_mode}", align_corners = {int(align_corners)}> (real, grid)
        """,
        **quantization,
    )


def example(call: Call, **_: Any) -> list[Tensor]:
    if call.ranks[0] == 5:
        return [torch.arange(2 * 3 * 40, dtype=torch.uint8).reshape(2, 3, 2, 4, 5), torch.rand(2, 2, 3, 4, 3)]
    return [torch.arange(120, dtype=torch.uint8).reshape(2, 3, 4, 5), torch.rand(2, 2, 3, 2)]
