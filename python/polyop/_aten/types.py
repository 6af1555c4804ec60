# SPDX-License-Identifier: Apache-2.0
"""Types for which ONNX or ONNX Runtime lacks an operator: float64, computed in float32, and integers.

Imported last: a call that another module of this folder translates is left to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from polyop._aten.special import erfc
from polyop._aten.table import REFUSED, WRONG, decomposes, extend, first_of, overload

aten = torch.ops.aten

# Operators whose ONNX form contains a node that ONNX Runtime's CPU provider lacks in float64: Conv, AveragePool,
# Resize, InstanceNormalization, Det, Elu, Acos, …
_IN_FLOAT = (
    "convolution", "conv1d", "conv2d", "conv3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "col2im",
    "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_nearest1d.vec",
    "upsample_nearest2d.vec", "upsample_nearest3d.vec", "upsample_linear1d", "upsample_bilinear2d",
    "upsample_bilinear2d.vec", "upsample_trilinear3d", "upsample_trilinear3d.vec", "upsample_bicubic2d",
    "upsample_bicubic2d.vec", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa",
    "instance_norm", "group_norm", "native_group_norm", "_linalg_det", "linalg_det", "det", "logdet",
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan", "angle",
    "elu", "selu", "celu", "hardsigmoid", "hardswish", "leaky_relu", "prelu", "_prelu_kernel", "softplus", "mish",
    "lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input", "multinomial",
)  # fmt: skip


def _in_float(target: str, first: Callable[..., Any] | None) -> Callable[..., Any]:
    """Returns the function that computes an operator of float64 in float32, if `first` leaves the call to it."""
    op = overload(target)
    assert op is not None

    def call(*args: Any, **given: Any) -> Any:
        result = NotImplemented if first is None else first(*args, **given)
        leaves = pytree.tree_leaves((args, given))
        if result is not NotImplemented or not any(isinstance(a, Tensor) and a.dtype == torch.float64 for a in leaves):
            return result
        args, given = pytree.tree_map(_narrow, (args, given))
        return pytree.tree_map(_widen, op(*args, **given))

    return call


def _narrow(value: Any) -> Any:
    return value.to(torch.float32) if isinstance(value, Tensor) and value.dtype == torch.float64 else value


def _widen(value: Any) -> Any:
    return value.to(torch.float64) if isinstance(value, Tensor) and value.dtype == torch.float32 else value


for _name in _IN_FLOAT:
    extend(f"aten::{_name}", "float64, in float32", partial(_in_float, f"aten::{_name}"), without=REFUSED)


_ROUNDED = (torch.float16, torch.bfloat16)
_WHEN_REDUCED = "sums and products of float16 and bfloat16"


def _scatter_in_float(target: str) -> Callable[..., Any]:
    """Returns the function that adds or multiplies numbers of 16 bits in float32: ONNX Runtime cannot scatter them, and
    says so only when the file runs. What writes an element once is left to it."""
    op = overload(target)
    assert op is not None

    def call(self: Tensor, *args: Any, **given: Any) -> Any:
        reduces = "index_put" not in target or given.get("accumulate", args[2] if len(args) > 2 else False)
        if self.dtype not in _ROUNDED or not reduces:
            return NotImplemented
        args, given = pytree.tree_map_only(Tensor, lambda x: x.float() if x.dtype in _ROUNDED else x, (args, given))
        return op(self.float(), *args, **given).to(self.dtype)

    return call


for _name in ("scatter_add", "scatter_reduce.two", "index_put", "_unsafe_index_put"):
    _function = _scatter_in_float(f"aten::{_name}")
    extend(f"aten::{_name}", _WHEN_REDUCED, partial(first_of, _function), without=REFUSED)


def _mean(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    """Of no elements, ONNX Runtime's mean is 0 in place of NaN."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols  # imports sympy, which takes a second

    axes = [dim] if isinstance(dim, int) else list(dim or range(self.dim()))
    sizes = [self.shape[axis] for axis in axes]
    dtype = dtype or self.dtype
    if not dtype.is_floating_point or not free_unbacked_symbols(sizes):
        return NotImplemented
    wide = torch.promote_types(dtype, torch.float32)
    count = aten.scalar_tensor(math.prod(sizes), dtype=wide, device=self.device)
    return (self.to(wide).sum(axes, keepdim=keepdim) / count).to(dtype)


for _name in ("mean", "mean.dim"):
    extend(f"aten::{_name}", "a size that depends on values, and may be 0", partial(first_of, _mean), without=WRONG)


def _of_integers(function: Callable[[Tensor], Tensor], first: Callable[..., Any] | None) -> Callable[..., Any]:
    def call(self: Tensor) -> Any:
        if not self.dtype.is_floating_point and not self.dtype.is_complex:
            return function(self)
        return NotImplemented if first is None else first(self)

    return call


_INTEGERS: dict[str, Callable[[Tensor], Tensor]] = {
    "isfinite": lambda x: torch.ones_like(x, dtype=torch.bool),
    "isnan": lambda x: torch.zeros_like(x, dtype=torch.bool),
    "relu": lambda x: x.clamp(min=0),
    **dict.fromkeys(("ceil", "floor", "round", "trunc"), torch.clone),
}
for _name, _function in _INTEGERS.items():
    extend(f"aten::{_name}", "integers", partial(_of_integers, _function), without=REFUSED)


def _shift(right: bool, alias: bool) -> Callable[..., Any]:
    op = aten.bitwise_right_shift if right else aten.bitwise_left_shift

    def call(self: Any, other: Any) -> Any:
        dtype = torch.result_type(self, other)
        if dtype != torch.uint8:
            return op.Tensor(self.to(dtype), other.to(dtype)) if alias else NotImplemented
        device = (self if isinstance(self, Tensor) else other).device
        if not isinstance(other, Tensor):
            other = torch.full([], other if 0 <= other < 8 else 8, dtype=torch.uint8, device=device)
        wide = (
            self.to(torch.int32)
            if isinstance(self, Tensor)
            else torch.full([], self & 255, dtype=torch.int32, device=device)
        )
        count = other.to(torch.uint8).to(torch.int32).clamp(max=8)  # all bits
        return op.Tensor(wide, count).to(torch.uint8)

    return call


for _name in ("bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar", "bitwise_right_shift.Scalar_Tensor"):
    for _target, _right in ((_name, True), (_name.replace("right", "left"), False)):
        decomposes(f"aten::{_target}", without=WRONG, when="unsigned integers: the type")(_shift(_right, False))
for _target, _right in (("__rshift__", True), ("__lshift__", False)):
    decomposes(f"aten::{_target}.Scalar", without=WRONG, when="unsigned integers: the type")(_shift(_right, False))
    decomposes(f"aten::{_target}.Tensor")(_shift(_right, True))


@decomposes("aten::gelu", without=REFUSED, when="float64")
def gelu(self: Tensor, *, approximate: str = "none") -> Any:
    if self.dtype != torch.float64 or approximate != "none":
        return NotImplemented
    return self * erfc(self * -math.sqrt(0.5)) / 2


@decomposes("aten::native_layer_norm", without=WRONG, when="float64: types of the mean and the deviation")
def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[Any], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Any:
    if input.dtype != torch.float64:
        return NotImplemented
    axes = list(range(-len(normalized_shape), 0))
    mean = input.mean(axes, keepdim=True)
    centred = input - mean
    scale = torch.rsqrt((centred * centred).mean(axes, keepdim=True) + eps)
    result = centred * scale
    result = result if weight is None else result * weight
    return result if bias is None else result + bias, mean, scale
