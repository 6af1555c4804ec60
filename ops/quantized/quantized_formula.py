# SPDX-License-Identifier: Apache-2.0
"""Operators between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call, NoBodyError


def dequantized(x: Tensor, input_scale: float, input_zero_point: int) -> Tensor:
    return (x.float() - input_zero_point) * input_scale


def quantized(y: Tensor, like: Tensor, output_scale: float, output_zero_point: int) -> Tensor:
    limits = torch.iinfo(like.dtype)
    return (torch.round(y / output_scale) + output_zero_point).clamp(limits.min, limits.max).to(like.dtype)


def body_around(
    call: Call, x: str, y: str, node: str, *, input_scale: float, input_zero_point: int, output_scale: float,
    output_zero_point: int,
) -> str:  # fmt: skip
    """Returns a body. node: statements that compute `result` from `real`; x, y: names of the input and the output."""
    if call.opset < 15:
        raise NoBodyError("ONNX has CastLike from opset 15 on")
    return f"""
        input_scale = Constant <value_float: float = {input_scale!r}> ()
        input_integer = Constant <value_int = {input_zero_point}> ()
        input_zero = CastLike (input_integer, {x})
        real = DequantizeLinear ({x}, input_scale, input_zero)
        {node}
        output_scale = Constant <value_float: float = {output_scale!r}> ()
        output_integer = Constant <value_int = {output_zero_point}> ()
        output_zero = CastLike (output_integer, {x})
        {y} = QuantizeLinear (result, output_scale, output_zero)
    """
