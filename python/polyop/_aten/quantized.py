"""Products and rounding of quantized numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from polyop._aten.table import decomposes


@decomposes("aten::_int_mm")
def int_mm(self: Tensor, mat2: Tensor) -> Any:
    return torch.onnx.ops.symbolic(
        "MatMulInteger", [self, mat2], dtype=torch.int32, shape=[self.shape[0], mat2.shape[1]], version=14
    )


@decomposes("aten::view.dtype", when="Boolean and 8-bit integers")
def view_dtype(self: Tensor, dtype: torch.dtype) -> Any:
    if self.dtype == dtype:
        return self.clone()
    if (self.dtype, dtype) in ((torch.bool, torch.uint8), (torch.bool, torch.int8), (torch.int8, torch.uint8)):
        return self.to(torch.int32).bitwise_and(255).to(dtype)
    if (self.dtype, dtype) == (torch.uint8, torch.int8):
        wide = self.to(torch.int32)
        return torch.where(wide > 127, wide - 256, wide).to(torch.int8)
    return NotImplemented


def fake_quantize(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int, axis: int | None = None
) -> Tensor:  # fmt: skip
    """Rounds to quantized numbers, with a scale for all elements or for each index of an axis."""
    if axis is not None:
        shape = [1] * input.dim()
        shape[axis] = -1
        scale, zero_point = scale.reshape(shape), zero_point.reshape(shape)
    steps = torch.round(input * (1.0 / scale) + zero_point).clamp(quant_min, quant_max)
    return ((steps - zero_point) * scale).to(input.dtype)


@contextmanager
def fixed_switches(model: torch.nn.Module) -> Iterator[None]:
    """In a `with` block, torch.ao.quantization.FakeQuantize reads no tensor to know whether it quantizes.

    This is for those whose observer is disabled: another one changes its scale with each call.
    """
    kind: Any = getattr(sys.modules.get("torch.ao.quantization.fake_quantize"), "FakeQuantize", None)
    fixed: list[Any] = []
    modules: Iterable[Any] = model.modules() if kind is not None else ()
    for module in modules:
        if type(module) is kind and module.observer_enabled[0] == 0:
            module.__dict__["forward"] = partial(_fixed, module, bool(module.fake_quant_enabled[0] == 1))
            fixed.append(module)
    try:
        yield
    finally:
        for module in fixed:
            del module.__dict__["forward"]


def _fixed(module: Any, quantizes: bool, input: Tensor) -> Tensor:
    if not quantizes:
        return input
    axis = module.ch_axis if module.is_per_channel else None
    limits = module.activation_post_process.quant_min, module.activation_post_process.quant_max
    return fake_quantize(input, module.scale, module.zero_point, *limits, axis)


# The operators of torch.ao.quantization.fx, which PT2E's quantizers write. PyTorch's exporter has those whose scale is
# a number.


def _quantize(input: Tensor, scale: Tensor, zero_point: Tensor, low: int, high: int, dtype: torch.dtype) -> Tensor:
    return (torch.round(input * (1.0 / scale)) + zero_point).clamp(low, high).to(dtype)


@decomposes("quantized_decomposed::quantize_per_tensor.tensor")
def quantize_per_tensor(
    input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, dtype: torch.dtype
) -> Any:  # fmt: skip
    return _quantize(input, scale.to(input.dtype), zero_point.to(input.dtype), quant_min, quant_max, dtype)


@decomposes("quantized_decomposed::dequantize_per_tensor.tensor")
def dequantize_per_tensor(
    input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, dtype: torch.dtype, *,
    out_dtype: torch.dtype | None = None,
) -> Any:  # fmt: skip
    kind = out_dtype or torch.float32
    return (input.to(kind) - zero_point.to(kind)) * scale.to(kind)


def _range(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the limits of a range that has 0."""
    return low.clamp(max=0), high.clamp(min=0)


@decomposes("quantized_decomposed::choose_qparams.tensor")
def choose_qparams(input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: torch.dtype) -> Any:
    low, high = _range(input.min(), input.max())
    scale = ((high - low) / float(quant_max - quant_min)).clamp(min=eps)
    zero_point = (quant_min - torch.round(low / scale)).clamp(quant_min, quant_max)
    return scale.to(torch.float64), zero_point.to(torch.int64)


@decomposes("quantized_decomposed::choose_qparams_per_token_asymmetric")
def choose_qparams_per_token(input: Tensor, dtype: torch.dtype) -> Any:
    quant_min, quant_max = -128, 127  # whatever the type is
    low, high = _range(input.amin([-1], keepdim=True), input.amax([-1], keepdim=True))
    scale = ((high - low) / float(quant_max - quant_min)).clamp(min=torch.finfo(torch.float32).eps)
    below, above = low / scale, high / scale
    near = torch.where(quant_min + below + (quant_max + above) > 0, quant_min - below, quant_max - above)
    return scale.to(torch.float64), near.clamp(quant_min, quant_max).round().to(torch.int64)


@decomposes("quantized_decomposed::quantize_per_token")
def quantize_per_token(
    input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: torch.dtype
) -> Any:  # fmt: skip
    return (input * (1.0 / scales) + zero_points).round().clamp(quant_min, quant_max).to(dtype)


@decomposes("quantized_decomposed::dequantize_per_token")
def dequantize_per_token(
    input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: torch.dtype,
    output_dtype: torch.dtype,
) -> Any:  # fmt: skip
    return ((input - zero_points) * scales).to(output_dtype)
