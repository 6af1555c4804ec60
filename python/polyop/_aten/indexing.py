# SPDX-License-Identifier: Apache-2.0
"""Reading and writing by indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyop._aten.table import REFUSED, SLOW, decomposes, overload

aten = torch.ops.aten


def _alike(index: Tensor, like: Tensor, dim: int) -> Tensor:
    """Returns an index of slices along `dim` as one of elements."""
    shape = [1] * like.dim()
    shape[dim] = -1
    return index.reshape(shape).expand(like.shape)


_REDUCTIONS = {"prod": "mul", "mean": "mean", "amax": "max", "amin": "min", "sum": "add"}
_REDUCED = frozenset((torch.float32, torch.float64, torch.int32, torch.int64))


def reduced(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool = True) -> Tensor:
    """Reduces the slices of `source` into those of `self` that a vector of indices selects, by polyop's scatter_reduce.

    Requires: `self` has one of the types _REDUCED, a real one for the mean.
    """
    return torch.ops.polyop.scatter_reduce.default(
        self, index.to(torch.int64), source, axis=dim, reduction=_REDUCTIONS[reduce], include_self=int(include_self)
    )


@decomposes("aten::index_reduce", nodes=("scatter_reduce",))
def index_reduce(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    if self.dim() == 0:
        rows = index_reduce(
            self.reshape(1), 0, index.reshape(-1), source.reshape(-1), reduce, include_self=include_self
        )
        return rows.reshape(())
    if self.dtype in _REDUCED and (reduce != "mean" or self.dtype.is_floating_point):
        return reduced(self, dim, index.reshape(-1), source, reduce, include_self)
    return aten.scatter_reduce(self, dim, _alike(index, source, dim), source, reduce, include_self=include_self)


_SCATTERED = {"add": "sum", "multiply": "prod"}


def as_large_as(index: Tensor, src: Tensor) -> Tensor:
    """Returns the elements of `src` that are scattered: it may be larger than the index, unlike in ONNX."""
    from torch.fx.experimental import symbolic_shapes  # imports sympy, which takes a second

    for axis, (size, given) in enumerate(zip(index.shape, src.shape, strict=True)):
        if not symbolic_shapes.statically_known_true(size == given):
            src = src.narrow(axis, 0, size)
    return src


def _scatter_of(target: Any) -> Any:
    def call(self: Tensor, dim: int, index: Tensor, src: Any) -> Any:
        if self.dim() == 0 or index.dim() == 0:
            src = src.reshape(-1) if isinstance(src, Tensor) else src
            return target(self.reshape(-1), 0, index.reshape(-1), src).reshape(self.shape)
        part = as_large_as(index, src) if isinstance(src, Tensor) else src
        return NotImplemented if part is src else target(self, dim, index, part)

    return call


_SMALLER = "a scalar, or an index that is smaller than the source"
for _name in ("scatter_add", "scatter.src"):
    decomposes(f"aten::{_name}", without=REFUSED, when=_SMALLER)(_scatter_of(overload(f"aten::{_name}")))
decomposes("aten::scatter.value", without=REFUSED, when="a scalar")(_scatter_of(aten.scatter.value))


@decomposes("aten::scatter.reduce")
def scatter(self: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Any:
    src = as_large_as(index, src)
    return aten.scatter_reduce(self, dim, index, src, _SCATTERED[reduce])


@decomposes("aten::scatter.value_reduce")
def scatter_value(self: Tensor, dim: int, index: Tensor, value: Any, *, reduce: str) -> Any:
    src = torch.full(index.shape, value, dtype=self.dtype, device=self.device)
    return aten.scatter_reduce(self, dim, index, src, _SCATTERED[reduce])


@decomposes("aten::put")
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Any:
    flat, at = self.reshape(-1), index.reshape(-1)
    at = torch.where(at < 0, at + flat.shape[0], at)
    scatter = torch.scatter_add if accumulate else torch.scatter
    return scatter(flat, 0, at, source.reshape(-1)).reshape(self.shape)


@decomposes("aten::take")
def take(self: Tensor, index: Tensor) -> Any:
    return self.reshape(-1).index_select(0, index.reshape(-1)).reshape(index.shape)


def _flat_positions(size: Sequence[int], stride: Sequence[int], offset: int, device: torch.device) -> Tensor:
    """Returns the storage index of each element of a strided view."""
    positions = torch.full([1] * len(size), offset, dtype=torch.int64, device=device)
    for axis, (count, step) in enumerate(zip(size, stride, strict=True)):
        shape = [1] * len(size)
        shape[axis] = -1
        positions = positions + (torch.arange(count, device=device) * step).reshape(shape)
    return positions


@decomposes("aten::as_strided_scatter")
def as_strided_scatter(
    self: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Any:
    at = _flat_positions(size, stride, storage_offset or 0, self.device)
    return torch.scatter(self.reshape(-1), 0, at.reshape(-1), src.reshape(-1)).reshape(self.shape)


@decomposes("aten::diagonal_scatter")
def diagonal_scatter(self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    dim1, dim2 = dim1 % self.dim(), dim2 % self.dim()
    rows, columns = self.shape[dim1], self.shape[dim2]
    moved = torch.movedim(self, (dim1, dim2), (-2, -1))
    row = torch.arange(rows, device=self.device).unsqueeze(1)
    column = torch.arange(columns, device=self.device)
    count = src.shape[-1]
    # Of each element of the matrix, the one of the diagonal in its row.
    at = row if offset >= 0 else row + offset
    spread = src.index_select(-1, at.reshape(-1).clamp(min=0, max=max(count - 1, 0)))
    written = torch.where(column - row == offset, spread.unsqueeze(-1), moved)
    return torch.movedim(written, (-2, -1), (dim1, dim2))


def found_indices(x: Tensor, mode: str) -> Tensor:
    """Returns the positions in a flattened tensor that polyop's find_indices finds."""
    return torch.ops.polyop.find_indices.default(x, mode=mode, dimensions=1).squeeze(1)


@decomposes("aten::masked_select", nodes=("find_indices",))
def masked_select(self: Tensor, mask: Tensor) -> Any:
    self, mask = torch.broadcast_tensors(self, mask)
    # Of single elements, ONNX Runtime's GatherElements is 10 times as fast as Gather. TensorRT has no Compress.
    return torch.gather(self.reshape(-1), 0, found_indices(mask, "nonzero"))


@decomposes("aten::index.Tensor", without=SLOW, when="a mask of all elements")
def index(self: Tensor, indices: Sequence[Tensor | None]) -> Any:
    mask = indices[0] if len(indices) == 1 else None
    if mask is None or mask.dtype != torch.bool or mask.dim() != self.dim() or self.dim() == 0:
        return NotImplemented
    return torch.gather(self.reshape(-1), 0, torch.nonzero(mask.reshape(-1)).squeeze(1))


@decomposes("aten::masked_scatter", without=SLOW)
def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Any:
    if self.dtype.is_complex or source.shape.numel() == 0:
        return NotImplemented
    self, mask = torch.broadcast_tensors(self, mask)
    numbers = source.reshape(-1)
    # The n-th element of the mask takes number n; before the first, any one.
    numbers = torch.cat([numbers[:1], numbers])
    at = mask.reshape(-1).to(torch.int64).cumsum(0)
    return torch.where(mask, torch.gather(numbers, 0, at).reshape(self.shape), self)


@decomposes("aten::repeat_interleave.Tensor", without=SLOW)
def repeat_interleave(repeats: Tensor, *, output_size: int | None = None) -> Any:
    if output_size is None:  # polyop/_torch/onnx_translations.py writes its nodes: the size depends on values
        return NotImplemented
    ends = repeats.cumsum(0)
    # A mark at the end of each but the last one; an index is the number of ends at or before its position.
    marks = torch.zeros([output_size + 1], dtype=torch.int64, device=repeats.device)
    marks = torch.scatter_add(marks, 0, ends, torch.ones_like(ends))
    return marks[:-1].cumsum(0).to(repeats.dtype)


_SEGMENT_REDUCE = {"sum": "sum", "mean": "sum", "max": "amax", "min": "amin", "prod": "prod"}
_NEUTRAL = {"sum": 0.0, "mean": 0.0, "max": -torch.inf, "min": torch.inf, "prod": 1.0}


@decomposes("aten::segment_reduce")
def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
    offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False, initial: float | None = None,
) -> Any:  # fmt: skip
    if indices is not None:
        return NotImplemented
    axis = axis % data.dim()
    given = lengths if lengths is not None else offsets
    if given is None or given.dim() != axis + 1:
        return NotImplemented
    zero = torch.zeros_like(given.narrow(axis, 0, 1))
    ends = given.cumsum(axis) if lengths is not None else given.narrow(axis, 1, given.shape[axis] - 1)
    starts = (
        torch.cat([zero, ends.narrow(axis, 0, ends.shape[axis] - 1)], axis)
        if lengths is not None
        else (given.narrow(axis, 0, given.shape[axis] - 1))
    )
    counts = ends - starts
    segments = ends.shape[axis]
    rows = torch.arange(data.shape[axis], device=data.device)
    # The segment of each row is the number of segments that end at or before it; rows after the last one are dropped.
    segment = (rows.unsqueeze(-1) >= ends.unsqueeze(axis)).to(torch.int64).sum(-1)
    shape = [*data.shape[:axis], data.shape[axis]] + [1] * (data.dim() - axis - 1)
    at = segment.reshape(shape).expand(data.shape)
    start = [*data.shape[:axis], segments + 1, *data.shape[axis + 1 :]]
    first = torch.full(start, _NEUTRAL[reduce] if initial is None else initial, dtype=data.dtype, device=data.device)
    result = aten.scatter_reduce(first, axis, at, data, _SEGMENT_REDUCE[reduce]).narrow(axis, 0, segments)
    if reduce == "mean":
        counts = counts.reshape([*counts.shape] + [1] * (data.dim() - axis - 1)).to(data.dtype)
        mean = result / counts
        # An empty segment keeps its initial value.
        result = mean if initial is None else torch.where(counts > 0, mean, result)
    return result


_BAG_MODES = ("sum", "mean", "max")


def _bags(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:  # fmt: skip
    """Embedding bags: a row of the table for each index, reduced by bag."""
    if indices.dtype != offsets.dtype:
        indices, offsets = indices.to(torch.int64), offsets.to(torch.int64)
    # The bag of an index is the number of bags that begin at or before it, less one. Empty bags begin together.
    starts = (offsets[:-1] if include_last_offset else offsets).to(torch.int64)
    begins = torch.zeros([indices.shape[0] + 1], dtype=torch.int64, device=weight.device)
    bag = torch.scatter_add(begins, 0, starts, torch.ones_like(starts))[:-1].cumsum(0) - 1
    used = indices != padding_idx
    sizes = torch.zeros([starts.shape[0]], dtype=torch.int64, device=weight.device)
    size = torch.scatter_add(sizes, 0, bag, used.to(torch.int64))
    if weight.dtype in (torch.float32, torch.float16, torch.bfloat16):
        result = torch.ops.polyop.embedding_bag.default(
            weight, indices, offsets, per_sample_weights, mode=_BAG_MODES[mode],
            include_last_offset=int(include_last_offset), padding_idx=padding_idx,
        )  # fmt: skip
    else:
        rows = weight.index_select(0, indices)
        if per_sample_weights is not None:
            rows = rows * per_sample_weights.unsqueeze(1)
        neutral = -torch.inf if mode == 2 else 0.0
        rows = torch.where(used.unsqueeze(1), rows, torch.full_like(rows, neutral))
        first = torch.full([starts.shape[0], weight.shape[1]], neutral, dtype=weight.dtype, device=weight.device)
        result = reduced(first, 0, bag, rows, "amax" if mode == 2 else "sum")
        if mode == 1:
            result = result / size.clamp(min=1).unsqueeze(1).to(weight.dtype)
        elif mode == 2:
            result = torch.where((size > 0).unsqueeze(1), result, torch.zeros_like(result))
    return result, bag.to(indices.dtype), size.to(indices.dtype), torch.zeros_like(size).to(indices.dtype)


decomposes(
    "aten::_embedding_bag", "aten::_embedding_bag_forward_only", without=SLOW, nodes=("embedding_bag", "scatter_reduce")
)(_bags)


@decomposes(
    "aten::embedding_bag", "aten::embedding_bag.padding_idx", without=SLOW, nodes=("embedding_bag", "scatter_reduce")
)
def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:  # fmt: skip
    padding = -1 if padding_idx is None else padding_idx % weight.shape[0]
    return _bags(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding
    )


@decomposes("aten::nonzero", without=REFUSED, when="float64, or a number")
def nonzero(self: Tensor) -> Any:
    if self.dim() == 0:
        return torch.nonzero(self.reshape(1)).narrow(1, 0, 0)
    return torch.nonzero(self != 0) if self.dtype == torch.float64 else NotImplemented
