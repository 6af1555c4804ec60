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
