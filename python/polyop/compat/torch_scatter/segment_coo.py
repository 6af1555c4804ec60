# SPDX-License-Identifier: Apache-2.0
"""Reductions of neighbouring elements with the same index. TorchScript compiles these functions."""

from torch import Tensor

from polyop.compat.torch_scatter.scatter import scatter_max, scatter_mean, scatter_min, scatter_sum


def _expand(index: Tensor, src: Tensor) -> Tensor:
    """Returns sorted indices [*, E] with the leading dimensions of src [*, E, …]."""
    return index.expand(list(src.shape[: index.dim()]))


def segment_sum_coo(src: Tensor, index: Tensor, out: Tensor | None = None, dim_size: int | None = None) -> Tensor:
    """Sums; with `out`, adds to it."""
    return scatter_sum(src, _expand(index, src), index.dim() - 1, out, dim_size)


def segment_add_coo(src: Tensor, index: Tensor, out: Tensor | None = None, dim_size: int | None = None) -> Tensor:
    """`segment_sum_coo`."""
    return segment_sum_coo(src, index, out, dim_size)


def segment_mean_coo(src: Tensor, index: Tensor, out: Tensor | None = None, dim_size: int | None = None) -> Tensor:
    """Means; 0 for an index without elements."""
    return scatter_mean(src, _expand(index, src), index.dim() - 1, out, dim_size)


def segment_min_coo(
    src: Tensor, index: Tensor, out: Tensor | None = None, dim_size: int | None = None
) -> tuple[Tensor, Tensor]:
    """The smallest elements and their positions, as `scatter_min`."""
    return scatter_min(src, _expand(index, src), index.dim() - 1, out, dim_size)


def segment_max_coo(
    src: Tensor, index: Tensor, out: Tensor | None = None, dim_size: int | None = None
) -> tuple[Tensor, Tensor]:
    """The largest elements and their positions, as `scatter_max`."""
    return scatter_max(src, _expand(index, src), index.dim() - 1, out, dim_size)


def segment_coo(
    src: Tensor, index: Tensor, out: Tensor | None = None, dim_size: int | None = None, reduce: str = "sum"
) -> Tensor:
    """`torch_scatter.segment_coo`: reduces elements by sorted indices of the last dimension of `index`: "sum" or "add",
    "mean", "min" or "max"."""
    if reduce == "sum" or reduce == "add":
        return segment_sum_coo(src, index, out, dim_size)
    if reduce == "mean":
        return segment_mean_coo(src, index, out, dim_size)
    if reduce == "min":
        return segment_min_coo(src, index, out, dim_size)[0]
    if reduce == "max":
        return segment_max_coo(src, index, out, dim_size)[0]
    raise ValueError("segment_coo: expected reduce 'sum', 'add', 'mean', 'min' or 'max', got '" + reduce + "'")


def gather_coo(src: Tensor, index: Tensor, out: Tensor | None = None) -> Tensor:
    """Elements of `src` by sorted indices of the last dimension of `index`."""
    dim = index.dim() - 1
    size = list(src.shape)
    size[dim] = index.size(dim)
    full = index.expand(size[: dim + 1]).reshape(size[: dim + 1] + [1] * (src.dim() - dim - 1)).expand(size)
    result = src.gather(dim, full)
    return result if out is None else out.copy_(result)
