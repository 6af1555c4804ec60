# SPDX-License-Identifier: Apache-2.0
"""Shapes of indices. TorchScript compiles these functions, so that their annotations are not postponed."""

import torch
from torch import Tensor


def broadcast(src: Tensor, other: Tensor, dim: int) -> Tensor:
    """Returns indices of other's shape. One-dimensional indices are those of dimension `dim`."""
    axis = dim + other.dim() if dim < 0 else dim
    if src.dim() == 1:
        src = src.reshape([1] * axis + [-1])
    return src.reshape(list(src.shape) + [1] * (other.dim() - src.dim())).expand(other.shape)


def result_size(src: Tensor, index: Tensor, dim: int, dim_size: int | None) -> list[int]:
    """Returns the shape of the result: as many elements as the indices need, unless `dim_size` is given."""
    size = list(src.shape)
    if dim_size is None:
        dim_size = int(index.max()) + 1 if index.numel() > 0 else 0
    size[dim] = dim_size
    return size


def positions(src: Tensor, dim: int) -> Tensor:
    """Returns the index of each element along a dimension."""
    return broadcast(torch.arange(src.size(dim), device=src.device), src, dim)


def limits(size: list[int], like: Tensor, is_max: bool) -> Tensor:
    """Returns a tensor of this shape with the least number of like's type, or the greatest if `is_max` is false."""
    if like.is_floating_point():
        limit = torch.full(size, float("-inf") if is_max else float("inf"), dtype=like.dtype, device=like.device)
    elif like.dtype == torch.uint8:
        limit = torch.full(size, 0 if is_max else 255, dtype=like.dtype, device=like.device)
    else:
        least = -(1 << (8 * like.element_size() - 1))
        limit = torch.full(size, least if is_max else -(least + 1), dtype=like.dtype, device=like.device)
    return limit


def may_have_nan(tensor: Tensor) -> bool:
    """Returns True if an element is NaN. Where values cannot be read, or only by waiting for a GPU, returns True."""
    if torch.jit.is_scripting():
        return tensor.device.type != "cpu" or bool(tensor.isnan().any())
    else:
        if tensor.device.type != "cpu" or torch.jit.is_tracing() or torch.compiler.is_compiling():
            return True
        return bool(tensor.isnan().any())
