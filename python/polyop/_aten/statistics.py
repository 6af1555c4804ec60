# SPDX-License-Identifier: Apache-2.0
"""Order statistics, searches in sorted values, histograms, and distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyop._aten.indexing import reduced
from polyop._aten.table import REFUSED, SLOW, decomposes

aten = torch.ops.aten


# The types of polyop's nodes; others are computed in the one of these that has their values.
_NODE_TYPES = frozenset((torch.float32, torch.float64, torch.int32, torch.int64))


def _in_node_type(x: Tensor) -> Tensor:
    if x.dtype in _NODE_TYPES:
        return x
    return x.to(torch.float32 if x.dtype.is_floating_point else torch.int32)


def _selected(self: Tensor, statistic: str, dim: int, keepdim: bool, k: int = 1) -> tuple[Tensor, Tensor]:
    """Returns an element of each row by polyop's order_statistic, and its index."""
    if self.dim() == 0:
        return self.clone(), torch.zeros([], dtype=torch.int64, device=self.device)
    last = dim % self.dim() == self.dim() - 1
    rows = _in_node_type(self if last else self.transpose(dim, -1))
    value, index = torch.ops.polyop.order_statistic.default(rows, statistic=statistic, k=k)
    value = value.to(self.dtype)
    if keepdim or not last:
        value, index = value.unsqueeze(-1).transpose(dim, -1), index.unsqueeze(-1).transpose(dim, -1)
    return (value, index) if keepdim or last else (value.squeeze(dim), index.squeeze(dim))


@decomposes("aten::median.dim", nodes=("order_statistic",))
def median_dim(self: Tensor, dim: int, keepdim: bool = False) -> Any:
    return _selected(self, "median", dim, keepdim)


@decomposes("aten::median", nodes=("order_statistic",))
def median(self: Tensor) -> Any:
    return _selected(self.reshape(-1), "median", 0, False)[0]


@decomposes("aten::nanmedian.dim", nodes=("order_statistic",))
def nanmedian_dim(self: Tensor, dim: int, keepdim: bool = False) -> Any:
    return _selected(self, "nanmedian", dim, keepdim)


@decomposes("aten::nanmedian", nodes=("order_statistic",))
def nanmedian(self: Tensor) -> Any:
    return _selected(self.reshape(-1), "nanmedian", 0, False)[0]


@decomposes("aten::kthvalue", nodes=("order_statistic",))
def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    return _selected(self, "kth", dim, keepdim, k) if isinstance(k, int) else NotImplemented


@decomposes("aten::mode", nodes=("order_statistic",))
def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    return _selected(self, "mode", dim, keepdim)


def _search(sorted_sequence: Tensor, values: Tensor, right: bool = False) -> Tensor:
    """Returns indices by polyop's search_sorted, for values of any shape in one sequence, or of as many rows."""
    sorted_sequence, values = _in_node_type(sorted_sequence), _in_node_type(values)
    if sorted_sequence.dim() > 1 or values.dim() == 1:
        return torch.ops.polyop.search_sorted.default(sorted_sequence, values, right=int(right))
    found = torch.ops.polyop.search_sorted.default(sorted_sequence, values.reshape(-1), right=int(right))
    return found.reshape(values.shape)


@decomposes("aten::searchsorted.Tensor", nodes=("search_sorted",))
def searchsorted(
    sorted_sequence: Tensor, self: Tensor, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Tensor | None = None,
) -> Any:  # fmt: skip
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    common = torch.result_type(sorted_sequence, self)
    index = _search(sorted_sequence.to(common), self.to(common), right or side == "right")
    return index.to(torch.int32) if out_int32 else index


@decomposes("aten::searchsorted.Scalar", nodes=("search_sorted",))
def searchsorted_scalar(sorted_sequence: Tensor, self: Any, **how: Any) -> Any:
    dtype = sorted_sequence.dtype
    if isinstance(self, float) and not dtype.is_floating_point:
        dtype = torch.float64
    value = torch.full([], self, dtype=dtype, device=sorted_sequence.device)
    return searchsorted(sorted_sequence, value, **how)


@decomposes("aten::bucketize.Tensor", without=SLOW, nodes=("search_sorted",))
def bucketize(self: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Any:
    return searchsorted(boundaries, self, out_int32=out_int32, right=right)


@decomposes("aten::isin.Tensor_Tensor", without=SLOW, nodes=("search_sorted",))
def isin(elements: Tensor, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Any:
    if isinstance(test_elements.numel(), int) and test_elements.numel() == 0:
        return torch.full_like(elements, invert, dtype=torch.bool)
    common = torch.promote_types(elements.dtype, test_elements.dtype)
    elements, test_elements = _in_node_type(elements.to(common)), _in_node_type(test_elements.to(common).reshape(-1))
    exists = None
    if test_elements.dtype.is_floating_point:  # NaN equals no element, and has no position in a sort
        nan = test_elements.isnan()
        exists = ~nan.all()
        least = torch.where(nan, torch.full_like(test_elements, torch.inf), test_elements).amin([0], keepdim=True)
        test_elements = torch.where(nan, least, test_elements)
    ordered = test_elements.sort().values
    at = _search(ordered, elements).clamp(max=ordered.shape[0] - 1)
    found = torch.gather(ordered, 0, at.reshape(-1)).reshape(elements.shape) == elements
    found = found if exists is None else found & exists
    return ~found if invert else found


def _histogram(bin: Tensor, bins: Any, weight: Tensor | None, dtype: torch.dtype, by_node: bool = True) -> Tensor:
    """Returns how many elements, or how much weight, each bin has. Elements of bin `bins` are in none.

    by_node: adds by polyop's scatter_reduce, and not by a standard operator.
    """
    if weight is None:
        weight = torch.ones_like(bin, dtype=dtype)
    counts, weight = torch.zeros([bins + 1], dtype=dtype, device=bin.device), weight.reshape(-1).to(dtype)
    if by_node and dtype in _NODE_TYPES:
        return reduced(counts, 0, bin, weight, "sum").narrow(0, 0, bins)
    return counts.scatter_add(0, bin, weight).narrow(0, 0, bins)


def _bin_of(x: Tensor, edges: Tensor) -> Tensor:
    """Returns the bin of each number, by PyTorch's binary search; the number of bins for those in none.

    Edges that are not sorted give PyTorch's results, too.
    """
    bins = edges.shape[0] - 1
    found = (_search(edges, x, right=True) - 1).clamp(max=bins - 1)
    within = (x >= edges[0]) & (x <= edges[-1])
    return torch.where(within, found, torch.full_like(found, 1) * bins)


@decomposes("aten::histogram.bins_tensor", nodes=("search_sorted", "scatter_reduce"))
def histogram(self: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False) -> Any:
    result = _histogram(_bin_of(self.reshape(-1), bins), bins.shape[0] - 1, weight, self.dtype)
    if density:
        result = result / (result.sum() * (bins[1:] - bins[:-1]))
    return result, bins.clone()


def _edges(x: Tensor, bins: int, limits: Any) -> Tensor:
    """Returns the edges of bins of equal width, between two limits or the extrema of a vector."""
    low, high = (
        (x.min(), x.max())
        if limits is None
        else (torch.full([], limit, dtype=x.dtype, device=x.device) for limit in limits)
    )
    same = low == high
    low, high = torch.where(same, low - 0.5, low), torch.where(same, high + 0.5, high)
    steps = torch.arange(bins + 1, device=x.device).to(x.dtype) / bins
    return torch.where(steps < 0.5, low + (high - low) * steps, high - (high - low) * (1 - steps))


@decomposes("aten::histogram.bin_ct", nodes=("search_sorted", "scatter_reduce"))
def histogram_count(
    self: Tensor, bins: int = 100, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    x = self.reshape(-1)
    edges = _edges(x, bins, range)
    if weight is not None or not isinstance(bins, int):
        return histogram(self, edges, weight=weight, density=density)
    # Of edges in order, the first and the last count are those of elements in no bin, and of the last edge: fewer
    # nodes of all elements than if each is given its bin first.
    counts = _histogram(_search(edges, x, right=True), bins + 2, None, self.dtype)
    last = (x == edges[-1]).to(self.dtype).sum().reshape(1)
    result = torch.cat([counts[1:bins], counts[bins : bins + 1] + last])
    if density:
        result = result / (result.sum() * (edges[1:] - edges[:-1]))
    return result, edges


@decomposes("aten::histc", without=SLOW)
def histc(self: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    if not self.dtype.is_floating_point or bins * torch.finfo(self.dtype).eps > 1:  # numbers of bins are exact
        return NotImplemented
    x = self.reshape(-1)
    low, high = (torch.full([], limit, dtype=self.dtype, device=self.device) for limit in (min, max))
    if min == max and isinstance(x.shape[0], int) and x.shape[0] > 0:
        low, high = x.min(), x.max()
    elif min == max and not isinstance(x.shape[0], int):
        return NotImplemented
    same = low == high
    low, high = torch.where(same, low - 1, low), torch.where(same, high + 1, high)
    nearest = x.clamp(low, high)
    position = ((nearest - low) * bins / (high - low)).clamp(max=bins - 1)
    bin = torch.where(nearest == x, position, torch.full_like(position, bins))
    # ONNX Runtime converts numbers to 32-bit integers several times as fast.
    bin = bin.to(torch.int32 if bins < 2**31 else torch.int64)
    return _histogram(bin, bins, None, self.dtype, by_node=False)


@decomposes("aten::_histogramdd_from_bin_tensors", nodes=("search_sorted", "scatter_reduce"))
def histogramdd(self: Tensor, bins: Any, *, weight: Tensor | None = None, density: bool = False) -> Any:
    points = self.reshape(-1, self.shape[-1])
    sizes = [edges.shape[0] - 1 for edges in bins]
    total: Any = 1
    for size in sizes:
        total = total * size
    bin, within = torch.zeros_like(points[:, 0], dtype=torch.int64), None
    for axis, edges in enumerate(bins):
        part = _bin_of(points[:, axis], edges)
        inside = part < sizes[axis]
        within = inside if within is None else within & inside
        bin = bin * sizes[axis] + part
    assert within is not None
    result = _histogram(torch.where(within, bin, torch.ones_like(bin) * total), total, weight, self.dtype)
    result = result.reshape(sizes)
    if density:
        result = result / result.sum()
        for axis, edges in enumerate(bins):
            shape = [1] * len(bins)
            shape[axis] = -1
            result = result / (edges[1:] - edges[:-1]).reshape(shape)
    return result


@decomposes("aten::_histogramdd_bin_edges")
def histogramdd_bin_edges(
    self: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    points = self.reshape(-1, self.shape[-1])
    limits = [None if range is None else range[2 * axis : 2 * axis + 2] for axis, _ in enumerate(bins)]
    return [_edges(points[:, axis], count, limits[axis]) for axis, count in enumerate(bins)]


@decomposes("aten::_histogramdd_from_bin_cts", nodes=("search_sorted", "scatter_reduce"))
def histogramdd_counts(
    self: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    return histogramdd(self, histogramdd_bin_edges(self, bins, range=range), weight=weight, density=density)


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


_MIN_POWER = 0.01
"""The smallest power of polyop's distances other than 0."""


def _distances(a: Tensor, b: Tensor, p: float, condensed: bool) -> Tensor:
    if a.dtype not in (torch.float32, torch.float64):
        return _distances(a.to(torch.float32), b.to(torch.float32), p, condensed).to(a.dtype)
    return torch.ops.polyop.cdist.default(a, b, p=p, condensed=int(condensed))


@decomposes("aten::_cdist_forward", nodes=("cdist",))
def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None = None) -> Any:
    if 0 < p < _MIN_POWER:
        return _norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)
    batch = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    a, b = (x.expand(*batch, *x.shape[-2:]) for x in (x1, x2))
    return _distances(a, b, p, False)


@decomposes("aten::_pdist_forward", nodes=("cdist",))
def pdist(self: Tensor, p: float = 2) -> Any:
    if 0 < p < _MIN_POWER:
        rows = torch.arange(self.shape[0], device=self.device)
        later = (rows.unsqueeze(1) < rows).reshape(-1)
        pairs = _norm(self.unsqueeze(1) - self.unsqueeze(0), p)
        return torch.masked_select(pairs.reshape(-1), later)
    return _distances(self, self, p, True).squeeze(0)


@decomposes("aten::var_mean.correction", without=REFUSED, when="float64 and sizes that are not constant")
def var_mean(self: Tensor, dim: Sequence[int] | None = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    axes = list(dim) if dim else list(range(self.dim()))
    if self.dtype != torch.float64 or all(isinstance(self.shape[axis], int) for axis in axes):
        return NotImplemented
    mean = self.mean(axes, keepdim=True)
    centred = self - mean
    # PyTorch's decomposition divides by a number, which becomes a float32 constant.
    count = torch.ones_like(self).sum(axes, keepdim=True) - (1 if correction is None else correction)
    variance = (centred * centred).sum(axes, keepdim=True) / count.clamp(min=0)
    return (variance, mean) if keepdim else (variance.squeeze(axes), mean.squeeze(axes))


@decomposes("aten::std_mean.correction", without=REFUSED, when="float64 and sizes that are not constant")
def std_mean(self: Tensor, dim: Sequence[int] | None = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    result = var_mean(self, dim, correction=correction, keepdim=keepdim)
    return result if result is NotImplemented else (result[0].sqrt(), result[1])
