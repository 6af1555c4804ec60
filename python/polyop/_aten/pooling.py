# SPDX-License-Identifier: Apache-2.0
"""Adaptive and fractional pooling, unpooling, and the sizes of pools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from polyop._aten.resampling import weighted_sums
from polyop._aten.table import decomposes

aten = torch.ops.aten


def window_count(size: Any, kernel: int, before: int, after: int, stride: int, dilation: int, ceil_mode: bool) -> Any:
    """Returns the number of windows of a pool, for a size that may be dynamic: PyTorch's own function takes the branch
    of the example."""
    extent = dilation * (kernel - 1) + 1
    if not ceil_mode:
        return (size + before + after - extent) // stride + 1
    count = (size + before + after - extent + stride - 1) // stride + 1
    if after + stride <= extent:
        return count
    return torch.sym_min(count, (size + before - 1) // stride + 1)  # windows that begin after the input do not count


def _max_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """Replaces the function in a capture: PyTorch's operator makes all sizes constant."""
    if return_indices or all(isinstance(size, int) for size in input.shape):
        return NotImplemented
    return torch.max_pool1d_with_indices(input, kernel_size, stride or [], padding, dilation, ceil_mode)[0]


def _adaptive_bounds(size: int, count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Returns the first pixel of each window of an adaptive pool, and the one after its last."""
    at = torch.arange(count, device=device)
    return (at * size) // count, ((at + 1) * size + count - 1) // count


def _means(self: Tensor, axis: int, count: Any) -> Tensor:
    """Returns the means of the windows of an axis."""
    if isinstance(count, int) and count == 1:
        return self.mean(axis, keepdim=True)
    size = self.shape[axis]
    first, last = _adaptive_bounds(size, count, self.device)
    pixel = first.unsqueeze(1) + torch.arange(_most(size, count), device=self.device)
    index = torch.where(pixel < last.unsqueeze(1), pixel, size)
    return weighted_sums(self, axis, index, (1 / (last - first).to(self.dtype)).unsqueeze(1))


def _most(size: Any, count: Any) -> Any:
    """Returns the number of pixels of the largest window, or more."""
    if not isinstance(size, int) or not isinstance(count, int):
        return size // count + 2
    return max((-(-(i + 1) * size // count) - i * size // count for i in range(count)), default=1)


def _uniform(sizes: Sequence[int], counts: Sequence[int]) -> bool:
    """Returns True if all windows of an adaptive pool have one size and no overlap: the exporter writes those."""
    return all(
        isinstance(size, int) and isinstance(count, int) and count > 0 and size % count == 0
        for size, count in zip(sizes, counts, strict=True)
    )


def _adaptive_avg_pool(axes: int) -> Callable[..., Any]:
    pool = {1: aten.avg_pool1d, 2: aten.avg_pool2d, 3: aten.avg_pool3d}[axes]

    def call(self: Tensor, output_size: Sequence[int]) -> Any:
        sizes = self.shape[self.dim() - axes :]
        if _uniform(sizes, output_size):
            kernel = [size // count for size, count in zip(sizes, output_size, strict=True)]
            return pool(self, kernel, kernel)
        for axis, count in zip(range(-axes, 0), output_size, strict=True):
            self = _means(self, axis, count)
        return self

    return call


decomposes("aten::_adaptive_avg_pool2d", "aten::adaptive_avg_pool2d")(_adaptive_avg_pool(2))
decomposes("aten::_adaptive_avg_pool3d", "aten::adaptive_avg_pool3d")(_adaptive_avg_pool(3))
decomposes("aten::adaptive_avg_pool1d")(_adaptive_avg_pool(1))


def _windows(first: Tensor, last: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Returns the pixels of each window, and which of them belong to it."""
    at = first.unsqueeze(1) + torch.arange(most, device=first.device)
    return torch.minimum(at, last.unsqueeze(1) - 1), at < last.unsqueeze(1)


def _maxima(self: Tensor, windows: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Returns the maximum of each combination of the axes' windows, and its index among the elements of these axes."""
    axes = len(windows)
    lead = self.dim() - axes
    position = torch.zeros([], dtype=torch.int64, device=self.device)
    inside = torch.ones([], dtype=torch.bool, device=self.device)
    values = self
    for i, (at, within) in enumerate(windows):
        # Axis lead + 2 i counts the windows, the one after it the pixels of a window.
        axis = lead + 2 * i
        values = values.index_select(axis, at.reshape(-1)).unflatten(axis, at.shape)
        shape = [1] * (2 * axes)
        shape[2 * i], shape[2 * i + 1] = at.shape
        position = position * self.shape[lead + i] + at.reshape(shape)
        inside = inside & within.reshape(shape)
    low = -torch.inf if self.dtype.is_floating_point else torch.iinfo(self.dtype).min
    values = torch.where(inside, values, torch.full([], low, dtype=self.dtype, device=self.device))
    order = [*range(lead), *(lead + 2 * i for i in range(axes)), *(lead + 2 * i + 1 for i in range(axes))]
    values = values.permute(order).flatten(lead + axes)
    position = position.permute([i - lead for i in order[lead:]]).flatten(axes)
    best, which = values.max(-1)
    return best, position.expand(values.shape).gather(-1, which.unsqueeze(-1)).squeeze(-1)


def _adaptive_max_pool(axes: int) -> Callable[..., Any]:
    def call(self: Tensor, output_size: Sequence[int]) -> Any:
        sizes = self.shape[self.dim() - axes :]
        windows = []
        for size, count in zip(sizes, output_size, strict=True):
            windows.append(_windows(*_adaptive_bounds(size, count, self.device), _most(size, count)))
        return _maxima(self, windows)

    return call


decomposes("aten::adaptive_max_pool2d")(_adaptive_max_pool(2))
decomposes("aten::adaptive_max_pool3d")(_adaptive_max_pool(3))


@decomposes("aten::adaptive_max_pool1d")
def adaptive_max_pool1d(self: Tensor, output_size: Sequence[int]) -> Any:
    return _adaptive_max_pool(1)(self, output_size)


def _of_sizes(axes: int, call: Callable[..., Any], indices: bool | None = None) -> Callable[..., Any]:
    """Replaces a pool in a capture: PyTorch's operator takes no sizes that depend on the input's."""

    def replacement(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        each = [output_size] * axes if isinstance(output_size, (int, torch.SymInt)) else list(output_size)
        each = [input.shape[i - axes] if size is None else size for i, size in enumerate(each)]
        if not any(isinstance(size, torch.SymInt) for size in each):
            return NotImplemented
        result = call(input, each)
        return result if isinstance(result, Tensor) or indices or return_indices else result[0]

    return replacement


def _area(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
    recompute_scale_factor: Any = None, antialias: bool = False,
) -> Any:  # fmt: skip
    """Computes means along one axis as along two, whose operator takes sizes that depend on the input's."""
    each = size if isinstance(size, (list, tuple)) else [size]
    if mode != "area" or input.dim() != 3 or not any(isinstance(s, torch.SymInt) for s in (*input.shape, *each)):
        return NotImplemented
    if size is not None:
        size = (1, *each)
    if scale_factor is not None:
        scale_factor = (1, *(scale_factor if isinstance(scale_factor, (list, tuple)) else [scale_factor]))
    return functional.interpolate(input.unsqueeze(-2), size, scale_factor, mode).squeeze(-2)


REPLACED: dict[Any, Callable[..., Any]] = {
    functional.interpolate: _area,
    functional.max_pool1d: _max_pool1d,
    torch.max_pool1d: _max_pool1d,
    functional.adaptive_avg_pool1d: _of_sizes(1, _adaptive_avg_pool(1)),
    functional.adaptive_max_pool1d: _of_sizes(1, _adaptive_max_pool(1)),
    functional.adaptive_max_pool2d: _of_sizes(2, _adaptive_max_pool(2)),
    functional.adaptive_max_pool3d: _of_sizes(3, _adaptive_max_pool(3)),
    functional.adaptive_max_pool1d_with_indices: _of_sizes(1, _adaptive_max_pool(1), True),
    functional.adaptive_max_pool2d_with_indices: _of_sizes(2, _adaptive_max_pool(2), True),
    functional.adaptive_max_pool3d_with_indices: _of_sizes(3, _adaptive_max_pool(3), True),
}


def _fractional_max_pool(axes: int) -> Callable[..., Any]:
    def call(self: Tensor, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: Tensor) -> Any:
        # PyTorch's samples are (batch, channel, axis), with the last axis first, and shared by no two channels.
        batched = self if self.dim() == axes + 2 else self.unsqueeze(0)
        sizes = batched.shape[2:]
        flat = batched.flatten(0, 1)
        position = torch.zeros([1], dtype=torch.int64, device=self.device)
        samples = random_samples.flatten(0, 1)
        index = position
        for i, (size, kernel, count) in enumerate(zip(sizes, kernel_size, output_size, strict=True)):
            # Of two axes the samples hold the horizontal one first, of three the temporal one.
            sample = samples[:, axes - 1 - i if axes == 2 else i].unsqueeze(1)
            at = torch.arange(count, device=self.device)
            alpha = (size - kernel) / torch.sym_max(count - 1, 1)
            first = ((at + sample) * alpha).to(torch.int64) - (sample * alpha).to(torch.int64)
            first = torch.where(at == count - 1, torch.full_like(first, 1) * (size - kernel), first)
            pixels = first.unsqueeze(2) + torch.arange(kernel, device=self.device)  # (n c, windows, kernel)
            shape = [1] * (2 * axes)
            shape[2 * i], shape[2 * i + 1] = count, kernel
            index = index.reshape(-1, *[1] * (2 * axes)) if i == 0 else index
            index = index * size + pixels.reshape(-1, *shape)
        order = [0, *range(1, 2 * axes, 2), *range(2, 2 * axes + 1, 2)]
        index = index.permute(order).flatten(axes + 1)
        values = flat.flatten(1).gather(1, index.flatten(1)).reshape(index.shape)
        best, which = values.max(-1)
        where = index.gather(-1, which.unsqueeze(-1)).squeeze(-1)
        shape = [*self.shape[: self.dim() - axes], *output_size]
        return best.reshape(shape), where.reshape(shape)

    return call


def _of_ratio(axes: int, with_indices: bool) -> Callable[..., Any]:
    """Replaces a function that computes the number of windows from a size: PyTorch's operator takes constants only."""

    def call(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        sizes = input.shape[-axes:]
        if output_ratio is None or all(isinstance(size, int) for size in sizes):
            return NotImplemented
        ratios = output_ratio if isinstance(output_ratio, Sequence) else [output_ratio] * axes
        kernel = kernel_size if isinstance(kernel_size, Sequence) else [kernel_size] * axes
        counts = [torch.sym_int(size * ratio) for size, ratio in zip(sizes, ratios, strict=True)]
        if _random_samples is None:
            lead = [1] * (axes + 2 - input.dim()) + list(input.shape[:-axes])
            _random_samples = torch.rand([*lead, axes], dtype=input.dtype, device=input.device)
        found = _fractional_max_pool(axes)(input, kernel, counts, _random_samples)
        return found if with_indices or return_indices else found[0]

    return call


for _axes in (2, 3):
    decomposes(f"aten::fractional_max_pool{_axes}d")(_fractional_max_pool(_axes))
    REPLACED[getattr(functional, f"fractional_max_pool{_axes}d")] = _of_ratio(_axes, False)
    REPLACED[getattr(functional, f"fractional_max_pool{_axes}d_with_indices")] = _of_ratio(_axes, True)


def _unpool(axes: int) -> Callable[..., Any]:
    def call(self: Tensor, indices: Tensor, output_size: Sequence[int], *_: Any) -> Any:
        lead = list(self.shape[: self.dim() - axes])
        elements = 1
        for size in output_size:
            elements = elements * size
        zeros = torch.zeros([*lead, elements], dtype=self.dtype, device=self.device)
        written = torch.scatter(zeros, -1, indices.flatten(self.dim() - axes), self.flatten(self.dim() - axes))
        return written.reshape([*lead, *output_size])

    return call


decomposes("aten::max_unpool2d")(_unpool(2))
decomposes("aten::max_unpool3d")(_unpool(3))
