# SPDX-License-Identifier: Apache-2.0
"""Reductions of elements with the same index. TorchScript compiles these functions."""

import torch
from torch import Tensor

from polyop.compat.torch_scatter.utils import broadcast, limits, may_have_nan, positions, result_size


def scatter_sum(
    src: Tensor, index: Tensor, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """Sums; with `out`, adds to it."""
    index = broadcast(index, src, dim)
    if out is None:
        out = torch.zeros(result_size(src, index, dim, dim_size), dtype=src.dtype, device=src.device)
    return out.scatter_add_(dim, index, src)


def scatter_add(
    src: Tensor, index: Tensor, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """`scatter_sum`."""
    return scatter_sum(src, index, dim, out, dim_size)


def scatter_mul(
    src: Tensor, index: Tensor, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """Products; 1 for an index without elements. With `out`, multiplies it."""
    index = broadcast(index, src, dim)
    if out is None:
        ones = torch.ones(result_size(src, index, dim, dim_size), dtype=src.dtype, device=src.device)
        return ones.scatter_reduce(dim, index, src, "prod")
    return out.scatter_reduce_(dim, index, src, "prod")


def scatter_mean(
    src: Tensor, index: Tensor, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """Means, of integers rounded down; 0 for an index without elements."""
    total = scatter_sum(src, index, dim, out, dim_size)
    if index.dim() == 1:
        ones = torch.ones(index.shape, dtype=src.dtype, device=src.device)
        count = broadcast(scatter_sum(ones, index, 0, None, total.size(dim)), total, dim)
    else:
        count = scatter_sum(torch.ones_like(src), index, dim, None, total.size(dim))
    count = count.clamp(min=1)
    return total.true_divide_(count) if total.is_floating_point() else total.div_(count, rounding_mode="floor")


def scatter_min(
    src: Tensor, index: Tensor, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> tuple[Tensor, Tensor]:
    """The smallest elements and their positions: the first of equal ones. An index without elements has 0 and
    src.size(dim). With `out`, its elements take part, and have this position as well.

    As in torch_scatter, an element counts if it is smaller than those before it: NaN never does, nor does infinity,
    unless it is smaller than an element of `out`.
    """
    return _extreme(src, index, dim, out, dim_size, False)


def scatter_max(
    src: Tensor, index: Tensor, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> tuple[Tensor, Tensor]:
    """The largest elements and their positions, as `scatter_min`."""
    return _extreme(src, index, dim, out, dim_size, True)


def scatter(
    src: Tensor,
    index: Tensor,
    dim: int = -1,
    out: Tensor | None = None,
    dim_size: int | None = None,
    reduce: str = "sum",
) -> Tensor:
    """`torch_scatter.scatter`: reduces the elements of `src` that have the same index along `dim`: "sum" or "add",
    "mul", "mean", "min" or "max"."""
    if reduce == "sum" or reduce == "add":
        return scatter_sum(src, index, dim, out, dim_size)
    if reduce == "mul":
        return scatter_mul(src, index, dim, out, dim_size)
    if reduce == "mean":
        return scatter_mean(src, index, dim, out, dim_size)
    if reduce == "min":
        return _values(src, index, dim, out, dim_size, False)
    if reduce == "max":
        return _values(src, index, dim, out, dim_size, True)
    raise ValueError("scatter: expected reduce 'sum', 'add', 'mul', 'mean', 'min' or 'max', got '" + reduce + "'")


def needs_positions(src: Tensor) -> bool:
    """Returns True if the gradient of the smallest or largest elements will be computed, which needs their
    positions."""
    return src.requires_grad and torch.is_grad_enabled()


def _values(src: Tensor, index: Tensor, dim: int, out: Tensor | None, dim_size: int | None, is_max: bool) -> Tensor:
    if needs_positions(src) or out is not None:
        return _extreme(src, index, dim, out, dim_size, is_max)[0]
    index = broadcast(index, src, dim)
    start = limits(result_size(src, index, dim, dim_size), src, is_max)
    reduce = "amax" if is_max else "amin"
    worst = float("-inf") if is_max else float("inf")
    best = start.scatter_reduce(dim, index, src, reduce, include_self=True)
    if src.is_floating_point() and may_have_nan(best):
        best = start.scatter_reduce(dim, index, src.masked_fill(src.isnan(), worst), reduce, include_self=True)
    return torch.where(best == start, 0, best)


def _extreme(
    src: Tensor, index: Tensor, dim: int, out: Tensor | None, dim_size: int | None, is_max: bool
) -> tuple[Tensor, Tensor]:
    index = broadcast(index, src, dim)
    values, none, reduce = src.detach(), src.size(dim), "amax" if is_max else "amin"
    start = limits(result_size(src, index, dim, dim_size), src, is_max) if out is None else out.detach()
    before = start.gather(dim, index)
    counts = values > before if is_max else values < before
    best = start.scatter_reduce(dim, index, torch.where(counts, values, before), reduce, include_self=True)
    found = torch.where(counts & (values == best.gather(dim, index)), positions(src, dim), none)
    arg = torch.full(best.shape, none, dtype=torch.long, device=src.device)
    arg = arg.scatter_reduce_(dim, index, found, "amin", include_self=True)
    # Gradients belong to the elements that were found.
    size = list(src.shape)
    size[dim] = 1
    padded = torch.cat([src, torch.zeros(size, dtype=src.dtype, device=src.device)], dim)
    result = padded.gather(dim, arg)
    if out is not None:
        return out.copy_(torch.where(arg == none, start, result)), arg
    return result, arg
