# SPDX-License-Identifier: Apache-2.0
"""Functions of several reductions. TorchScript compiles these functions."""

import torch
from torch import Tensor

from polyop.compat.torch_scatter.scatter import scatter_max, scatter_mean, scatter_sum
from polyop.compat.torch_scatter.utils import broadcast, result_size


def scatter_std(
    src: Tensor,
    index: Tensor,
    dim: int = -1,
    out: Tensor | None = None,
    dim_size: int | None = None,
    unbiased: bool = True,
) -> Tensor:
    """Standard deviations. torch_scatter adds 1e-6 to the number of elements, and so does this function."""
    index = broadcast(index, src, dim)
    if out is not None:
        dim_size = out.size(dim)
    mean = scatter_mean(src, index, dim, None, dim_size)
    squares = scatter_sum((src - mean.gather(dim, index)).square(), index, dim, out, dim_size)
    count = scatter_sum(torch.ones_like(src), index, dim, None, squares.size(dim))
    if unbiased:
        count = count - 1
    return (squares / (count.clamp(min=1) + 1e-6)).sqrt()


def scatter_logsumexp(
    src: Tensor,
    index: Tensor,
    dim: int = -1,
    out: Tensor | None = None,
    dim_size: int | None = None,
    eps: float = 1e-12,
) -> Tensor:
    """log(sum(exp(src)) + eps), without overflow; 0 for an index without elements. NaN is left out. With `out`, its
    elements take part."""
    _check_floating(src, "scatter_logsumexp")
    src = src.masked_fill(src.isnan(), float("-inf"))
    index = broadcast(index, src, dim)
    if out is None:
        start = torch.full(result_size(src, index, dim, dim_size), float("-inf"), dtype=src.dtype, device=src.device)
    else:
        start = out.detach().clone()
    largest = start.scatter_reduce(dim, index, src.detach(), "amax", include_self=True)
    shift = torch.where(largest.isfinite(), largest, torch.zeros_like(largest))
    total = (start - shift).exp().scatter_add(dim, index, (src - shift.gather(dim, index)).exp())
    result = (total + eps).log() + largest
    if out is None:
        return result.nan_to_num(neginf=0.0)
    return out.copy_(torch.where(result.isfinite(), result, start))


def scatter_softmax(src: Tensor, index: Tensor, dim: int = -1, dim_size: int | None = None) -> Tensor:
    """The softmax of the elements with the same index."""
    _check_floating(src, "scatter_softmax")
    index = broadcast(index, src, dim)
    scores = (src - scatter_max(src.detach(), index, dim, None, dim_size)[0].gather(dim, index)).exp()
    return scores / scatter_sum(scores, index, dim, None, dim_size).gather(dim, index)


def scatter_log_softmax(
    src: Tensor, index: Tensor, dim: int = -1, eps: float = 1e-12, dim_size: int | None = None
) -> Tensor:
    """The logarithm of the softmax of the elements with the same index. `eps` is added to the sums."""
    _check_floating(src, "scatter_log_softmax")
    index = broadcast(index, src, dim)
    scores = src - scatter_max(src.detach(), index, dim, None, dim_size)[0].gather(dim, index)
    total = scatter_sum(scores.exp(), index, dim, None, dim_size)
    return scores - (total + eps).log().gather(dim, index)


def _check_floating(src: Tensor, name: str) -> None:
    if not src.is_floating_point():
        raise ValueError(name + ": expected src of a floating-point type, got " + str(src.dtype))
