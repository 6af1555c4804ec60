"""Calls that PyTorch's exporter writes with wrong numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table

from polyop._aten.table import WRONG, decomposes

aten = torch.ops.aten


@decomposes("aten::scatter_reduce.two", without=WRONG, when='reduce="mean"')
def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
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


def _window_count(size: int, kernel: int, stride: int, padding: int, ceil_mode: bool) -> Any:
    count = (size + 2 * padding - kernel + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:  # a window must begin inside the input or left of it
        count -= 1
    return count


def _avg_pool(axes: int) -> Any:
    pool = {2: aten.avg_pool2d, 3: aten.avg_pool3d}[axes]

    def call(
        self: Tensor, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
        ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        if divisor_override is None:
            return NotImplemented
        kernel = _expanded(kernel_size, axes)
        steps = _expanded(stride, axes) if stride else kernel
        before = _expanded(padding, axes)
        pads: list[Any] = []
        elements = 1
        for axis in reversed(range(axes)):
            size = self.shape[axis - axes]
            count = _window_count(size, kernel[axis], steps[axis], before[axis], ceil_mode)
            pads += [before[axis], (count - 1) * steps[axis] + kernel[axis] - size - before[axis]]
            elements *= kernel[axis]
        padded = aten.constant_pad_nd(self, pads, 0.0)
        return pool(padded, kernel, steps) * (elements / divisor_override)

    return call


decomposes("aten::avg_pool2d", without=WRONG, when="divisor_override")(_avg_pool(2))
decomposes("aten::avg_pool3d", without=WRONG, when="divisor_override")(_avg_pool(3))


@decomposes("aten::cross_entropy_loss", without=WRONG, when="label_smoothing, or probabilities as the target")
def cross_entropy_loss(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1, ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    probabilities = target.dtype.is_floating_point
    if label_smoothing == 0 and not probabilities:
        return NotImplemented
    axis = 0 if self.dim() == 1 else 1
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


# Filters of antialiased resizing: the weight of a pixel at a distance from the centre.


def _triangle(distance: Tensor) -> Tensor:
    return (1 - distance.abs()).clamp(min=0)


def _cubic(distance: Tensor) -> Tensor:
    a = -0.5  # PyTorch's value when antialiasing
    x = distance.abs()
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return torch.where(x < 1, near, torch.where(x < 2, far, torch.zeros_like(x)))


def _resize_matrix(inputs: int, outputs: int, like: Tensor, filter: Any, reach: float) -> Tensor:
    """Returns the weights of an antialiased resize of one axis, a row for each output pixel."""
    scale = (inputs - 1) / (outputs - 1) if outputs > 1 else 0.0
    stretch = scale if scale >= 1 else 1.0
    support = reach * stretch
    centre = (torch.arange(outputs, device=like.device, dtype=like.dtype) + 0.5) * scale
    first = (centre - support + 0.5).to(torch.int64).clamp(min=0)
    last = (centre + support + 0.5).to(torch.int64).clamp(max=inputs)
    pixel = torch.arange(inputs, device=like.device)
    weights = filter((pixel + 0.5 - centre.unsqueeze(1)) / stretch)
    within = (pixel >= first.unsqueeze(1)) & (pixel < last.unsqueeze(1))
    weights = torch.where(within, weights, torch.zeros_like(weights))
    return weights / weights.sum(1, keepdim=True)


def _antialiased(filter: Any, reach: float) -> Any:
    def call(
        self: Tensor, output_size: Sequence[int], align_corners: bool, scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Any:  # fmt: skip
        if not align_corners:
            return NotImplemented
        high, wide = (
            _resize_matrix(self.shape[axis], output_size[axis], self, filter, reach) for axis in (-2, -1)
        )  # fmt: skip
        return torch.matmul(torch.matmul(high, self), wide.mT)

    return call


decomposes("aten::_upsample_bilinear2d_aa", without=WRONG, when="align_corners=True")(_antialiased(_triangle, 1.0))
decomposes("aten::_upsample_bicubic2d_aa", without=WRONG, when="align_corners=True")(_antialiased(_cubic, 2.0))


@decomposes("aten::linalg_vector_norm", without=WRONG, when="keepdim=True without dim")
def linalg_vector_norm(
    self: Tensor, ord: float = 2, dim: Sequence[int] | None = None, keepdim: bool = False, *,
    dtype: torch.dtype | None = None,
) -> Any:  # fmt: skip
    if dim or not keepdim or self.dim() == 0:
        return NotImplemented
    flat = aten.linalg_vector_norm(self.reshape(-1), ord, [0], False, dtype=dtype)
    return flat.reshape([1] * self.dim())


def _batch_norm(target: Any, training_at: int) -> Any:
    """Uses PyTorch's own decomposition in training mode, which the exporter writes as in evaluation mode."""
    own = decomposition_table[target]

    def call(*args: Any, **given: Any) -> Any:
        training = args[training_at] if len(args) > training_at else given["training"]
        return own(*args, **given) if training else NotImplemented

    return call


for _target in ("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional"):
    decomposes(f"aten::{_target}", without=WRONG, when="training=True")(
        _batch_norm(getattr(aten, _target).default, 5)
    )  # fmt: skip
decomposes("aten::_native_batch_norm_legit.no_stats", without=WRONG, when="training=True")(
    _batch_norm(aten._native_batch_norm_legit.no_stats, 3)
)
