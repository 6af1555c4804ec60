"""Corner pooling between DequantizeLinear and QuantizeLinear. The maxima are those of the integers."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.quantized_formula import body_around, dequantized, quantized
from polyop.formulas.running_extreme_formula import scan


def formula(
    input: Tensor, *, mode: str, input_scale: float, input_zero_point: int, output_scale: float, output_zero_point: int
) -> Tensor:
    dim = 2 if mode in ("top", "bottom") else 3
    real = dequantized(input, input_scale, input_zero_point)
    pooled = real.cummax(dim).values if mode in ("bottom", "right") else real.flip(dim).cummax(dim).values.flip(dim)
    return quantized(pooled, input, output_scale, output_zero_point)


def body(call: Call, *, mode: str, **quantization: Any) -> str:
    axis, backwards = 2 if mode in ("top", "bottom") else 3, mode in ("top", "left")
    around = body_around(call, "maxima", "output", "result = Identity (real)", **quantization)
    return scan("maxima", "indices", rank=4, axis=axis, backwards=backwards, greatest=True) + around
