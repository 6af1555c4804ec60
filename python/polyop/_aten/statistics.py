"""Order statistics, searches in sorted values, histograms, and distances."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop._aten.table import decomposes

aten = torch.ops.aten


def _restored(values: Tensor, indices: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def _sorted_low(self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Returns sorted values and indices, with NaN last."""
    if self.dtype.is_floating_point:
        return torch.sort(torch.where(self.isnan(), torch.full_like(self, torch.inf), self), dim)
    return torch.sort(self, dim)


@decomposes("aten::median.dim")
def median_dim(self: Tensor, dim: int, keepdim: bool = False) -> Any:
    if self.dim() == 0:
        return self.clone(), torch.zeros([], dtype=torch.int64, device=self.device)
    values, indices = _sorted_low(self, dim)
    middle = (self.shape[dim] - 1) // 2
    value, index = values.narrow(dim, middle, 1), indices.narrow(dim, middle, 1)
    if self.dtype.is_floating_point:
        nan = self.isnan()
        some = nan.any(dim, keepdim=True)
        value = torch.where(some, torch.full_like(value, torch.nan), value)
        index = torch.where(some, torch.argmax(nan.to(torch.int32), dim, keepdim=True), index)
    return _restored(value, index, dim, keepdim)


@decomposes("aten::median")
def median(self: Tensor) -> Any:
    return median_dim(self.reshape(-1), 0)[0]


@decomposes("aten::nanmedian.dim")
def nanmedian_dim(self: Tensor, dim: int, keepdim: bool = False) -> Any:
    if self.dim() == 0:
        return self.clone(), torch.zeros([], dtype=torch.int64, device=self.device)
    if not self.dtype.is_floating_point:
        return median_dim(self, dim, keepdim)
    values, indices = _sorted_low(self, dim)
    count = (~self.isnan()).to(torch.int64).sum(dim, keepdim=True)
    middle = torch.div((count - 1).clamp(min=0), 2, rounding_mode="floor")
    value, index = values.gather(dim, middle), indices.gather(dim, middle)
    value = torch.where(count == 0, torch.full_like(value, torch.nan), value)
    return _restored(value, index, dim, keepdim)


@decomposes("aten::nanmedian")
def nanmedian(self: Tensor) -> Any:
    return nanmedian_dim(self.reshape(-1), 0)[0]


@decomposes("aten::kthvalue")
def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if self.dim() == 0:
        return self.clone(), torch.zeros([], dtype=torch.int64, device=self.device)
    index = _sorted_low(self, dim)[1].narrow(dim, k - 1, 1)
    return _restored(self.gather(dim, index), index, dim, keepdim)


@decomposes("aten::mode")
def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    if self.dim() == 0:
        return self.clone(), torch.zeros([], dtype=torch.int64, device=self.device)
    moved = self.transpose(dim, -1)
    count = (moved.unsqueeze(-1) == moved.unsqueeze(-2)).to(torch.int64).sum(-1)
    often = count == count.amax([-1], keepdim=True)
    if self.dtype.is_floating_point:
        high: Any = torch.inf
    else:
        high = torch.iinfo(self.dtype).max if self.dtype != torch.bool else True
    candidates = torch.where(often, moved, torch.full_like(moved, high))
    value = candidates.amin([-1], keepdim=True) if self.dtype != torch.bool else candidates.all(-1, keepdim=True)
    # Of several elements PyTorch returns the last one.
    at = torch.arange(moved.shape[-1], device=self.device).expand(moved.shape)
    index = torch.where(moved == value, at, torch.full_like(at, -1)).amax([-1], keepdim=True)
    return _restored(value.transpose(dim, -1), index.transpose(dim, -1), dim, keepdim)


def _before(a: Tensor, b: Tensor) -> Tensor:
    """Returns True where a sorts before b: NaN is last."""
    if not a.dtype.is_floating_point and not b.dtype.is_floating_point:
        return a < b
    return (a < b) | (b.isnan() & ~a.isnan())


@decomposes("aten::searchsorted.Tensor")
def searchsorted(
    sorted_sequence: Tensor, self: Tensor, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Tensor | None = None,
) -> Any:  # fmt: skip
    right = right or side == "right"
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    row = sorted_sequence.unsqueeze(-2) if sorted_sequence.dim() > 1 else sorted_sequence
    value = self.unsqueeze(-1)
    passed = ~_before(value, row) if right else _before(row, value)
    return passed.to(torch.int64).sum(-1).to(torch.int32 if out_int32 else torch.int64)


@decomposes("aten::searchsorted.Scalar")
def searchsorted_scalar(sorted_sequence: Tensor, self: Any, **how: Any) -> Any:
    value = torch.full([], self, dtype=sorted_sequence.dtype, device=sorted_sequence.device)
    return searchsorted(sorted_sequence, value, **how)


def _bins(x: Tensor, edges: Tensor) -> Tensor:
    """Returns a matrix that has a row for each number and a column for each bin: 1 where the number is in it."""
    at, bins = x.unsqueeze(1), torch.arange(edges.shape[0] - 1, device=x.device)
    low, high = edges[:-1], edges[1:]
    within = (at >= low) & (at < high)
    if isinstance(edges.shape[0], int):
        within = (at >= edges[0]) & (_upper_bound(x, edges).unsqueeze(1) - 1 == bins)
    last = (at == edges[-1]) & (bins == bins.shape[0] - 1)
    return ((within & (at < edges[-1])) | last).to(x.dtype)


def _upper_bound(x: Tensor, edges: Tensor) -> Tensor:
    """Returns the index of the first edge above each number, by PyTorch's binary search: edges that are not sorted give
    its results, too."""
    first = torch.zeros_like(x, dtype=torch.int64)
    length = torch.full_like(first, edges.shape[0])
    for _ in range(edges.shape[0].bit_length()):
        half = torch.div(length, 2, rounding_mode="floor")
        middle = first + half
        edge = edges.index_select(0, middle.clamp(max=edges.shape[0] - 1))
        passed = (length > 0) & ~(x < edge)
        length = torch.where(passed, length - half - 1, half)
        first = torch.where(passed, middle + 1, first)
    return first


def _counted(within: Tensor, weight: Tensor | None) -> Tensor:
    return within.sum(0) if weight is None else (within * weight.reshape([-1] + [1] * (within.dim() - 1))).sum(0)


@decomposes("aten::histogram.bins_tensor")
def histogram(self: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False) -> Any:
    result = _counted(_bins(self.reshape(-1), bins), weight)
    if density:
        result = result / (result.sum() * (bins[1:] - bins[:-1]))
    return result, bins.clone()


@decomposes("aten::histogram.bin_ct")
def histogram_count(
    self: Tensor, bins: int = 100, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:  # fmt: skip
    low, high = (self.min(), self.max()) if range is None else (
        torch.full([], limit, dtype=self.dtype, device=self.device) for limit in range
    )  # fmt: skip
    same = low == high
    low, high = torch.where(same, low - 0.5, low), torch.where(same, high + 0.5, high)
    steps = torch.arange(bins + 1, device=self.device).to(self.dtype) / bins
    edges = torch.where(steps < 0.5, low + (high - low) * steps, high - (high - low) * (1 - steps))
    return histogram(self, edges, weight=weight, density=density)


@decomposes("aten::_histogramdd_from_bin_tensors")
def histogramdd(self: Tensor, bins: Any, *, weight: Tensor | None = None, density: bool = False) -> Any:
    points = self.reshape(-1, self.shape[-1])
    within = torch.ones([points.shape[0]], dtype=self.dtype, device=self.device)
    for axis, edges in enumerate(bins):
        part = _bins(points[:, axis], edges)
        shape = [part.shape[0]] + [1] * axis + [part.shape[1]]
        within = within.unsqueeze(-1) * part.reshape(shape)
    result = _counted(within, None if weight is None else weight)
    if density:
        result = result / result.sum()
        for axis, edges in enumerate(bins):
            shape = [1] * len(bins)
            shape[axis] = -1
            result = result / (edges[1:] - edges[:-1]).reshape(shape)
    return result


def _norm(difference: Tensor, p: float) -> Tensor:
    size = difference.abs()
    if p == 0:
        return (size != 0).to(size.dtype).sum(-1)
    if p == 1:
        return size.sum(-1)
    if p == 2:
        return (size * size).sum(-1).sqrt()
    if p == torch.inf:
        return size.amax([-1])
    return (size**p).sum(-1) ** (1 / p)


@decomposes("aten::_cdist_forward")
def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None = None) -> Any:
    return _norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


@decomposes("aten::_pdist_forward")
def pdist(self: Tensor, p: float = 2) -> Any:
    rows = self.shape[0]
    # Pairs are numbered row by row: row i has rows - 1 - i of them.
    pair = torch.arange(rows * (rows - 1) // 2, device=self.device)
    corner = rows - 0.5
    first = torch.floor(corner - torch.sqrt(corner * corner - 2 * pair.to(torch.float64))).to(torch.int64)
    second = pair + first + 1 - torch.div(first * (2 * rows - first - 1), 2, rounding_mode="floor")
    return _norm(self.index_select(0, first) - self.index_select(0, second), p)
