# SPDX-License-Identifier: Apache-2.0
"""Calls that PyTorch's exporter writes with wrong numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table

from polyop._aten.indexing import as_large_as
from polyop._aten.pooling import window_count
from polyop._aten.table import REFUSED, WRONG, decomposes, extend

aten = torch.ops.aten


@decomposes(
    "aten::scatter_reduce.two", without=WRONG, when='reduce="mean", or an index that is smaller than the source'
)
def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    part = as_large_as(index, src)
    if part is not src:
        return aten.scatter_reduce(self, dim, index, part, reduce, include_self=include_self)
    if reduce != "mean":
        return NotImplemented
    if self.dim() == 0:
        rows = aten.scatter_reduce(
            self.reshape(1), 0, index.reshape(1), src.reshape(1), reduce, include_self=include_self
        )
        return rows.reshape(())
    # An element that nothing is scattered to keeps its value, also without include_self.
    count = torch.scatter_add(torch.zeros_like(self), dim, index, torch.ones_like(src))
    start = self if include_self else torch.where(count > 0, torch.zeros_like(self), self)
    total = torch.scatter_add(start, dim, index, src)
    count = count + 1 if include_self else count.clamp(min=1)
    if self.dtype.is_floating_point:
        return total / count
    return torch.div(total, count, rounding_mode="floor")


def _expanded(values: Sequence[int], axes: int) -> list[int]:
    return list(values) * axes if len(values) == 1 else list(values)


def _avg_pool(axes: int) -> Any:
    pool = {2: aten.avg_pool2d, 3: aten.avg_pool3d}[axes]

    def call(
        self: Tensor, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
        ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        kernel = _expanded(kernel_size, axes)
        steps = _expanded(stride, axes) if stride else kernel
        if not self.dtype.is_floating_point and not any(padding) and not ceil_mode:
            count = math.prod(kernel)
            sums = torch.round(pool(self.to(torch.float32), kernel, steps) * count).to(self.dtype)
            return torch.div(sums, divisor_override or count, rounding_mode="trunc")
        if divisor_override is None:
            return NotImplemented
        before = _expanded(padding, axes)
        pads: list[Any] = []
        elements = 1
        for axis in reversed(range(axes)):
            size = self.shape[axis - axes]
            count = window_count(size, kernel[axis], before[axis], before[axis], steps[axis], 1, ceil_mode)
            pads += [before[axis], (count - 1) * steps[axis] + kernel[axis] - size - before[axis]]
            elements *= kernel[axis]
        padded = aten.constant_pad_nd(self, pads, 0.0)
        return pool(padded, kernel, steps) * (elements / divisor_override)

    return call


decomposes("aten::avg_pool2d", without=WRONG, when="divisor_override, or integers")(_avg_pool(2))
decomposes("aten::avg_pool3d", without=WRONG, when="divisor_override, or integers")(_avg_pool(3))


@decomposes(
    "aten::cross_entropy_loss", without=WRONG, when="label_smoothing, probabilities as the target, or one sample"
)
def cross_entropy_loss(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    if self.dim() == 1:
        return aten.cross_entropy_loss(
            self.unsqueeze(0), target.unsqueeze(0), weight, reduction or 2, ignore_index, label_smoothing
        )
    probabilities = target.dtype.is_floating_point
    if label_smoothing == 0 and not probabilities:
        return NotImplemented
    axis = 1
    classes = self.shape[axis]
    log = torch.log_softmax(self, axis)
    shape = [1] * self.dim()
    shape[axis] = classes
    weights = None if weight is None else weight.reshape(shape)
    if probabilities:
        smooth = target * (1 - label_smoothing) + label_smoothing / classes if label_smoothing else target
        loss = -(log * smooth * (1 if weights is None else weights)).sum(axis)
        if reduction == 1:  # divided by the batch and not by the weights
            return loss.sum() / (loss.numel())
        return loss.sum() if reduction == 2 else loss
    used = target != ignore_index
    at = torch.where(used, target, torch.zeros_like(target)).unsqueeze(axis)
    scaled = log if weights is None else log * weights
    exact = -scaled.gather(axis, at).squeeze(axis)
    uniform = -scaled.sum(axis)
    loss = exact * (1 - label_smoothing) + uniform * (label_smoothing / classes)
    loss = torch.where(used, loss, torch.zeros_like(loss))
    if reduction == 0:
        return loss
    if reduction == 2:
        return loss.sum()
    if weights is None:
        return loss.sum() / used.sum()
    given = weights.expand(self.shape).gather(axis, at).squeeze(axis)
    return loss.sum() / torch.where(used, given, torch.zeros_like(given)).sum()


@decomposes("aten::linalg_vector_norm", without=WRONG, when="keepdim=True without dim; dim of a number")
def linalg_vector_norm(
    self: Tensor,
    ord: float = 2,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Any:
    of_all, of_number = keepdim and not dim and self.dim() > 0, bool(dim) and self.dim() == 0
    if not of_all and not of_number:
        return NotImplemented
    flat = aten.linalg_vector_norm(self.reshape(-1), ord, [0], False, dtype=dtype)
    return flat.reshape([1] * self.dim())


@decomposes("aten::addmm", "aten::baddbmm", without=WRONG, when="matrices without elements")
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if not isinstance(mat1.shape[-1], int) or mat1.shape[-1] > 0:
        return NotImplemented
    scaled = torch.zeros_like(self) if beta == 0 else self * beta
    return scaled.expand([*mat1.shape[:-1], mat2.shape[-1]]).clone()


def _batch_norm(target: Any, training_at: int) -> Any:
    """Uses PyTorch's own decomposition in training mode, which the exporter writes as in evaluation mode.

    In evaluation mode the mean and the deviation have no elements.
    """
    own = decomposition_table[target]

    def call(*args: Any, **given: Any) -> Any:
        training = args[training_at] if len(args) > training_at else given["training"]
        if training:
            return own(*args, **given)
        if target is not aten.native_batch_norm.default or len(args) != 8:
            return NotImplemented
        input, weight, bias, mean, variance, _, momentum, eps = args
        none = torch.zeros([0], dtype=input.dtype, device=input.device)
        evaluated = aten._native_batch_norm_legit_no_training(input, weight, bias, mean, variance, momentum, eps)
        return evaluated[0], none, none

    return call


for _target in ("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional"):
    decomposes(f"aten::{_target}", without=WRONG, when="training=True")(_batch_norm(getattr(aten, _target).default, 5))
decomposes("aten::_native_batch_norm_legit.no_stats", without=WRONG, when="training=True")(
    _batch_norm(aten._native_batch_norm_legit.no_stats, 3)
)


# ---- division of numbers that are rounded ----------------------------------------------------------


def _floats(self: Any, other: Any) -> tuple[Tensor, Tensor, torch.dtype] | None:
    """Returns the operands in a type that PyTorch computes in, and the type of the result; None for integers."""
    like = self if isinstance(self, Tensor) else other
    dtype = torch.result_type(self, other)
    if not dtype.is_floating_point:
        return None
    wide = dtype if dtype == torch.float64 else torch.float32
    a, b = (
        x.to(wide) if isinstance(x, Tensor) else torch.full([], x, dtype=wide, device=like.device)
        for x in (self, other)
    )
    return a, b, dtype


@decomposes(
    "aten::remainder.Tensor",
    "aten::remainder.Scalar",
    "aten::remainder.Scalar_Tensor",
    without=WRONG,
    when="real numbers whose quotient is rounded to the next integer, or a size that is not constant",
)
def remainder(self: Any, other: Any) -> Any:
    if isinstance(other, torch.SymInt):  # the exporter takes numbers only
        return aten.remainder.Tensor(self, aten.scalar_tensor(other, dtype=self.dtype, device=self.device))
    found = _floats(self, other)
    if found is None:
        return NotImplemented
    a, b, dtype = found
    rest = torch.fmod(a, b)
    return torch.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest).to(dtype)


@decomposes(
    "aten::floor_divide",
    "aten::floor_divide.Scalar",
    without=WRONG,
    when="real numbers whose quotient is rounded to the next integer",
)
def floor_divide(self: Tensor, other: Any) -> Any:
    found = _floats(self, other)
    if found is None:
        return NotImplemented
    a, b, dtype = found
    rest, quotient = torch.fmod(a, b), a / b
    count = (a - rest) / b
    count = torch.where((rest != 0) & ((rest < 0) != (b < 0)), count - 1, count)
    floor = count.floor()
    floor = torch.where(count - floor > 0.5, floor + 1, floor)
    floor = torch.where(count == 0, quotient * 0, floor)  # a zero with the sign of the quotient
    return torch.where(b == 0, quotient, floor).to(dtype)


@decomposes(
    "aten::div.Tensor_mode",
    "aten::div.Scalar_mode",
    without=WRONG,
    when="integers, or real numbers whose quotient is rounded to the next integer",
)
def div(self: Tensor, other: Any, *, rounding_mode: str | None) -> Any:
    """The exporter divides integers in float32."""
    if rounding_mode == "floor":
        return aten.floor_divide(self, other)
    dtype = torch.result_type(self, other)
    if rounding_mode != "trunc" or dtype.is_floating_point:
        return NotImplemented
    if not isinstance(other, Tensor):
        other = torch.full([], other, dtype=dtype, device=self.device)
    self, other = self.to(dtype), other.to(dtype)
    quotient = aten.floor_divide(self, other)
    return torch.where((quotient < 0) & (quotient * other != self), quotient + 1, quotient)


# ---- numbers along a dimension ---------------------------------------------------------------------


def _of_number(of: Any) -> Any:
    """PyTorch takes dimension 0 of a tensor without dimensions for that of one element."""

    def call(self: Tensor, *args: Any, **given: Any) -> Any:
        return of(self, *args, **given) if self.dim() == 0 else NotImplemented

    return call


def _index(self: Tensor) -> Tensor:
    return torch.zeros([], dtype=torch.int64, device=self.device)


def _truth(self: Tensor) -> Tensor:
    return (self != 0).to(torch.uint8 if self.dtype == torch.uint8 else torch.bool)


_NUMBERS: dict[str, Any] = {
    "aminmax": lambda self, **given: (self.clone(), self.clone()),
    "all.dim": lambda self, *args: _truth(self),
    "any.dim": lambda self, *args: _truth(self),
    "topk": lambda self, k, *args: (self.clone(), _index(self)) if k == 1 else NotImplemented,
    "prod.dim_int": lambda self, *args, dtype=None: self.to(dtype or torch.prod(self).dtype),
}
for _name, _function in _NUMBERS.items():
    decomposes(f"aten::{_name}", without=REFUSED, when="dim of a number")(_of_number(_function))


def _any_of(before: Callable[..., Any] | None) -> Callable[..., Any]:
    """Counts, because ONNX's ReduceMax has no result for no elements, for which PyTorch's is False."""

    def call(self: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        if before is not None and (known := before(self, dim, keepdim)) is not NotImplemented:
            return known
        axes = list(range(self.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
        if self.dtype.is_complex or all(isinstance(self.shape[axis], int) for axis in axes):
            return NotImplemented
        found = (self != 0).to(torch.int64).sum(axes, keepdim=keepdim) > 0
        return found.to(torch.uint8) if self.dtype == torch.uint8 else found

    return call


for _name in ("any", "any.dim", "any.dims"):
    extend(f"aten::{_name}", "a size that is not constant, and may be 0", _any_of, without=WRONG)
