# SPDX-License-Identifier: Apache-2.0
"""Products and rounding of quantized numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from polyop._aten.elementary import is_negative, power_of_two, split
from polyop._aten.patches import replaced
from polyop._aten.table import decomposes


@decomposes("aten::_int_mm")
def int_mm(self: Tensor, mat2: Tensor) -> Any:
    return torch.onnx.ops.symbolic(
        "MatMulInteger", [self, mat2], dtype=torch.int32, shape=[self.shape[0], mat2.shape[1]], version=14
    )


@decomposes("aten::_weight_int8pack_mm")
def weight_int8pack_mm(self: Tensor, mat2: Tensor, scales: Tensor) -> Any:
    return torch.matmul(self, mat2.to(self.dtype).mT) * scales.to(self.dtype)


@decomposes("aten::_scaled_mm")
def scaled_mm(
    self: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None,
    scale_result: Tensor | None = None, out_dtype: torch.dtype | None = None, use_fast_accum: bool = False,
) -> Any:  # fmt: skip
    result = torch.matmul(self.to(torch.float32) * scale_a, mat2.to(torch.float32) * scale_b)
    if bias is not None:
        result = result + bias.to(torch.float32)
    return (result if scale_result is None else result * scale_result).to(out_dtype or self.dtype)


_library = torch.library.Library("polyop_export", "FRAGMENT")
_library.define("grouped_rows(Tensor rows, Tensor weights, Tensor ends) -> Tensor")


@torch.library.impl(_library, "grouped_rows", "CompositeExplicitAutograd")
def _grouped_rows(rows: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
    bounds = [0, *ends.tolist()]
    products = [rows[bounds[i] : bounds[i + 1]] @ weights[i] for i in range(len(weights))]
    return torch.cat([*products, rows.new_zeros([rows.shape[0] - bounds[-1], weights.shape[2]])])


@torch.library.register_fake("polyop_export::grouped_rows")
def _fake_grouped_rows(rows: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
    return rows.new_empty([rows.shape[0], weights.shape[2]])


@decomposes("transformers::grouped_mm_fallback")
def grouped_rows(input: Tensor, weight: Tensor, offs: Tensor) -> Any:
    """Multiplies the rows of each group, which end at `offs`, by its matrix. Rows after the last group become 0."""
    groups = weight.shape[0]
    if isinstance(groups, int):  # polyop/_torch/onnx_translations.py writes it
        return torch.ops.polyop_export.grouped_rows.default(input, weight, offs)
    group = (torch.arange(input.shape[0], device=input.device).unsqueeze(1) >= offs).to(torch.int64).sum(1)
    products = torch.matmul(input, weight)  # of all groups with all rows
    index = group.clamp(max=groups - 1).unsqueeze(1).expand(products.shape[1:])
    found = products.gather(0, index.unsqueeze(0)).squeeze(0)
    return torch.where((group < groups).unsqueeze(1), found, torch.zeros_like(found))


@decomposes("aten::_grouped_mm")
def grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Any:
    """A group has all matrices of its index, or the rows, columns or products up to its end in `offs`."""
    if bias is not None or (offs is None and self.dim() + mat2.dim() != 6):
        return NotImplemented
    dtype = out_dtype or self.dtype
    if self.dtype == torch.bfloat16:  # ONNX Runtime's CPU provider has no products of it
        self, mat2 = self.to(torch.float32), mat2.to(torch.float32)
    if offs is None:
        return torch.matmul(self, mat2).to(dtype)
    if self.dim() == mat2.dim() == 2:
        at = torch.arange(self.shape[1], device=self.device)
        starts = torch.cat([torch.zeros_like(offs[:1]), offs[:-1]])
        inside = (at >= starts.unsqueeze(1)) & (at < offs.unsqueeze(1))
        return torch.matmul(self * inside.unsqueeze(1).to(self.dtype), mat2).to(dtype)
    if self.dim() == 3:
        return grouped_rows(mat2.mT, self.mT, offs).mT.to(dtype)
    return grouped_rows(self, mat2, offs).to(dtype)


_LAYOUTS = {
    torch.float16: (torch.int16, 10, 15),
    torch.bfloat16: (torch.int16, 7, 127),
    torch.float32: (torch.int32, 23, 127),
    torch.float64: (torch.int64, 52, 1023),
}
"""The integer of the same size, the bits of the mantissa, and the bias of the exponent."""


def _bits(x: Tensor) -> Tensor:
    """Returns the bits of floating-point numbers. Those of NaN are the ones that PyTorch writes."""
    kind, mantissa_bits, bias = _LAYOUTS[x.dtype]
    wide = x.to(torch.float32) if x.dtype.itemsize == 2 else x
    special = wide.isnan() | wide.isinf()
    mantissa, exponent = split(torch.where(special, torch.ones_like(wide), wide.abs()))
    exponent = exponent - 1 + bias
    normal = exponent.to(torch.int64) * 2**mantissa_bits + ((mantissa * 2 - 1) * 2.0**mantissa_bits).to(torch.int64)
    a, b = power_of_two(exponent + mantissa_bits, wide.dtype)
    bits = torch.where((exponent > 0) & (wide != 0), normal, (mantissa * a * b).to(torch.int64))
    largest = (2 * bias + 1) * 2**mantissa_bits  # infinity
    bits = torch.where(special, largest + wide.isnan().to(torch.int64) * 2 ** (mantissa_bits - 1), bits)
    lowest = -(2 ** (8 * x.dtype.itemsize - 1))
    return torch.where(is_negative(wide), bits + lowest, bits).to(kind)


def _floats(bits: Tensor, dtype: torch.dtype) -> Tensor:
    """Returns the floating-point numbers with these bits."""
    _, mantissa_bits, bias = _LAYOUTS[dtype]
    kind = torch.float32 if dtype.itemsize == 2 else dtype
    wide = bits.to(torch.int64)
    size = torch.where(wide < 0, wide - torch.iinfo(bits.dtype).min, wide)
    exponent = torch.div(size, 2**mantissa_bits, rounding_mode="floor")
    fraction = (size - exponent * 2**mantissa_bits).to(kind) * 2.0**-mantissa_bits
    subnormal = exponent == 0
    a, b = power_of_two((exponent - bias + subnormal.to(torch.int64)).to(kind), kind)
    result = (fraction + (~subnormal).to(kind)) * a * b
    special = torch.where(fraction == 0, torch.full_like(result, torch.inf), torch.full_like(result, torch.nan))
    result = torch.where(exponent == 2 * bias + 1, special, result)
    return torch.where(wide < 0, -result, result).to(dtype)


@decomposes("aten::view.dtype", when="types of the same size; other bits of NaN are lost")
def view_dtype(self: Tensor, dtype: torch.dtype) -> Any:
    if self.dtype == dtype:
        return self.clone()
    if (self.dtype, dtype) in ((torch.bool, torch.uint8), (torch.bool, torch.int8), (torch.int8, torch.uint8)):
        return self.to(torch.int32).bitwise_and(255).to(dtype)
    if (self.dtype, dtype) == (torch.uint8, torch.int8):
        wide = self.to(torch.int32)
        return torch.where(wide > 127, wide - 256, wide).to(torch.int8)
    if dtype == _LAYOUTS.get(self.dtype, (None,))[0]:
        return _bits(self)
    if self.dtype == _LAYOUTS.get(dtype, (None,))[0]:
        return _floats(self, dtype)
    return NotImplemented


@decomposes("aten::hash_tensor")
def hash_tensor(self: Tensor, dim: Sequence[int] = (), *, keepdim: bool = False, mode: int = 0) -> Any:
    """The exclusive or of the elements' 64 bits: a bit of the result is 1 if an odd number of elements have it."""
    if self.is_complex():
        return NotImplemented
    axes = [axis % self.dim() for axis in dim] if self.dim() else []
    axes = axes or list(range(self.dim()))
    words = _bits(self.to(torch.float64)) if self.is_floating_point() else self.to(torch.int64)
    shift = torch.arange(32, device=self.device)
    weights = torch.bitwise_left_shift(torch.ones_like(shift), shift)
    # ONNX Runtime adds integers in double precision, so the halves of a word are added separately.
    halves = torch.stack([words & 0xFFFFFFFF, (words >> 32) & 0xFFFFFFFF], -1)
    odd = ((halves.unsqueeze(-1) & weights) != 0).to(torch.int64)
    if axes:
        odd = odd.sum(axes, keepdim=keepdim)
    low, high = ((odd & 1) * weights).sum(-1).unbind(-1)
    return (torch.where(high >= 1 << 31, high - (1 << 32), high) * (1 << 32) + low).to(torch.uint64)


def fake_quantize(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int, axis: int | None = None
) -> Tensor:
    """Rounds to quantized numbers, with a scale for all elements or for each index of an axis."""
    if axis is not None:
        shape = [1] * input.dim()
        shape[axis] = -1
        scale, zero_point = scale.reshape(shape), zero_point.reshape(shape)
    steps = (torch.round(input * (1.0 / scale)) + zero_point).clamp(quant_min, quant_max)
    return ((steps - zero_point) * scale).to(input.dtype)


@contextmanager
def fixed_switches(model: torch.nn.Module) -> Iterator[None]:
    """In a `with` block, torch.ao.quantization.FakeQuantize reads no tensor to know whether it quantizes.

    This is for those whose observer is disabled: another one changes its scale with each call.
    """
    kind: Any = getattr(sys.modules.get("torch.ao.quantization.fake_quantize"), "FakeQuantize", None)
    modules: Iterable[Any] = model.modules() if kind is not None else ()
    quantizes = {
        id(module): bool(module.fake_quant_enabled[0] == 1)
        for module in modules
        if type(module) is kind and module.observer_enabled[0] == 0
    }

    def forward(original: Callable[..., Tensor], module: Any, input: Tensor) -> Tensor:
        if id(module) not in quantizes:
            return original(module, input)
        return _fixed(module, quantizes[id(module)], input)

    with replaced({"torch.ao.quantization.fake_quantize:FakeQuantize.forward": forward}):
        yield


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
) -> Any:
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
    low, high = _range(input.min().reshape(1), input.max().reshape(1))
    scale = ((high - low) / float(quant_max - quant_min)).to(torch.float32).clamp(min=eps)
    zero_point = (quant_min - torch.round(low / scale)).clamp(quant_min, quant_max)
    return scale.to(torch.float64), zero_point.to(torch.int64)


@decomposes("quantized_decomposed::choose_qparams_symmetric.tensor")
def choose_qparams_symmetric(input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: torch.dtype) -> Any:
    largest = input.abs().max().reshape(1)
    scale = (largest / (float(quant_max - quant_min) / 2)).to(torch.float32).clamp(min=eps)
    zero_point = torch.full_like(scale, 128 if dtype == torch.uint8 else 0, dtype=torch.int64)
    return scale.to(torch.float64), zero_point


@decomposes("quantized_decomposed::choose_qparams_per_token")
def choose_qparams_of_tokens(input: Tensor, dtype: torch.dtype) -> Any:
    largest = input.abs().amax([-1], keepdim=True)
    scale = (largest.to(torch.float32) if largest.dtype == torch.float16 else largest).clamp(min=1e-5) / 127
    return scale, torch.zeros_like(scale)


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
) -> Any:
    return (input * (1.0 / scales) + zero_points).round().clamp(quant_min, quant_max).to(dtype)


@decomposes("quantized_decomposed::dequantize_per_token")
def dequantize_per_token(
    input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: torch.dtype,
    output_dtype: torch.dtype,
) -> Any:  # fmt: skip
    return ((input - zero_points) * scales).to(output_dtype)
