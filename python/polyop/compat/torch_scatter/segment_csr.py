# SPDX-License-Identifier: Apache-2.0
"""Reductions of the ranges between pointers. TorchScript compiles these functions."""

import torch
from torch import Tensor

from polyop import functional  # noqa: F401 (torch.ops.polyop)
from polyop.compat.torch_scatter.scatter import needs_positions, scatter_max, scatter_mean, scatter_min, scatter_sum
from polyop.compat.torch_scatter.segment_coo import gather_coo


def _index(src: Tensor, indptr: Tensor) -> Tensor:
    """Returns the number of each element's range, [*, E]. Elements of no range have the number of ranges."""
    dim = indptr.dim() - 1
    lead = list(src.shape[:dim])
    pointers = indptr.expand(lead + [indptr.size(-1)]).contiguous()
    elements = torch.arange(src.size(dim), device=src.device).expand(lead + [src.size(dim)]).contiguous()
    index = torch.searchsorted(pointers, elements, right=True) - 1
    return torch.where(index < 0, max(indptr.size(-1) - 1, 0), index)


def _by_kernel(src: Tensor, indptr: Tensor) -> bool:
    """Returns True for calls of polyop's kernel: it has f32, f16 and bf16, and ranges of rows."""
    types = src.dtype == torch.float32 or src.dtype == torch.float16 or src.dtype == torch.bfloat16
    return types and indptr.dim() == 1 and indptr.size(0) > 0 and src.device.type == "cpu"


def _rows(src: Tensor, indptr: Tensor, reduce: str) -> Tensor:
    rows = src.reshape(src.size(0), src[:1].numel()) if src.size(0) > 0 else src.new_zeros([0, src[:0].sum(0).numel()])
    result = torch.ops.polyop.segment_csr(rows, indptr, reduce=reduce)
    return result.reshape([indptr.size(0) - 1] + list(src.shape[1:]))


def _written(result: Tensor, out: Tensor | None) -> Tensor:
    return result if out is None else out.copy_(result)


def segment_sum_csr(src: Tensor, indptr: Tensor, out: Tensor | None = None) -> Tensor:
    """Sums; 0 for an empty range."""
    if _by_kernel(src, indptr):
        return _written(_rows(src, indptr, "sum"), out)
    dim, count = indptr.dim() - 1, max(indptr.size(-1) - 1, 0)
    return _written(scatter_sum(src, _index(src, indptr), dim, None, count + 1).narrow(dim, 0, count), out)


def segment_add_csr(src: Tensor, indptr: Tensor, out: Tensor | None = None) -> Tensor:
    """`segment_sum_csr`."""
    return segment_sum_csr(src, indptr, out)


def segment_mean_csr(src: Tensor, indptr: Tensor, out: Tensor | None = None) -> Tensor:
    """Means; 0 for an empty range."""
    if _by_kernel(src, indptr):
        return _written(_rows(src, indptr, "mean"), out)
    dim, count = indptr.dim() - 1, max(indptr.size(-1) - 1, 0)
    return _written(scatter_mean(src, _index(src, indptr), dim, None, count + 1).narrow(dim, 0, count), out)


def segment_min_csr(src: Tensor, indptr: Tensor, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The smallest elements and their positions: the first of equal ones. An empty range has 0 and src.size(dim)."""
    dim, count = indptr.dim() - 1, max(indptr.size(-1) - 1, 0)
    result, arg = scatter_min(src, _index(src, indptr), dim, None, count + 1)
    return _written(result.narrow(dim, 0, count), out), arg.narrow(dim, 0, count)


def segment_max_csr(src: Tensor, indptr: Tensor, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The largest elements and their positions, as `segment_min_csr`."""
    dim, count = indptr.dim() - 1, max(indptr.size(-1) - 1, 0)
    result, arg = scatter_max(src, _index(src, indptr), dim, None, count + 1)
    return _written(result.narrow(dim, 0, count), out), arg.narrow(dim, 0, count)


def segment_csr(src: Tensor, indptr: Tensor, out: Tensor | None = None, reduce: str = "sum") -> Tensor:
    """`torch_scatter.segment_csr`: reduces the elements [indptr[i], indptr[i + 1]) along the last dimension of
    `indptr`: "sum" or "add", "mean", "min" or "max"."""
    if reduce == "sum" or reduce == "add":
        return segment_sum_csr(src, indptr, out)
    if reduce == "mean":
        return segment_mean_csr(src, indptr, out)
    if (reduce == "min" or reduce == "max") and _by_kernel(src, indptr) and not needs_positions(src):
        result = _rows(src, indptr, reduce)  # ignores NaN, and has NaN where there is nothing else
        counts = result > float("-inf") if reduce == "max" else result < float("inf")
        return _written(torch.where(counts, result, 0), out)
    if reduce == "min":
        return segment_min_csr(src, indptr, out)[0]
    if reduce == "max":
        return segment_max_csr(src, indptr, out)[0]
    raise ValueError("segment_csr: expected reduce 'sum', 'add', 'mean', 'min' or 'max', got '" + reduce + "'")


def gather_csr(src: Tensor, indptr: Tensor, out: Tensor | None = None) -> Tensor:
    """Repeats the elements of `src`: element i fills the range [indptr[i], indptr[i + 1])."""
    count = int(indptr.flatten()[-1]) if indptr.numel() > 0 else 0
    lead = list(indptr.shape[:-1])
    elements = torch.arange(count, device=src.device).expand(lead + [count]).contiguous()
    return gather_coo(src, torch.searchsorted(indptr.contiguous(), elements, right=True) - 1, out)
