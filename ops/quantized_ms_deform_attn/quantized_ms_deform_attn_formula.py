"""Deformable attention between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from polyop.formulas import Call, NoBodyError
from polyop.formulas.deform_attn_formula import attend_at_locations
from polyop.formulas.quantized_formula import dequantized, quantized


def formula(
    value: Tensor, shapes: Tensor, starts: Tensor, locations: Tensor, weights: Tensor, *, input_scale: float,
    input_zero_point: int, output_scale: float, output_zero_point: int,
) -> Tensor:  # fmt: skip
    real = dequantized(value, input_scale, input_zero_point)
    attended = attend_at_locations(real, shapes, starts, locations, weights).flatten(2)
    return quantized(attended, value, output_scale, output_zero_point)


def body(call: Call, **_: Any) -> str:
    raise NoBodyError("convert the model before QuantizeLinear is part of its attention: that node has a function")
