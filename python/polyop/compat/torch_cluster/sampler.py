# SPDX-License-Identifier: Apache-2.0
"""Samples of neighbours."""

import math

import torch
from torch import Tensor


def neighbor_sampler(start: Tensor, rowptr: Tensor, size: float) -> Tensor:
    """Indices of random edges of each vertex in `start`, without repetition. A size up to 1 is a share of the vertex's
    edges, rounded up, and a larger one their number."""
    if size <= 0:
        raise ValueError(f"neighbor_sampler: expected a positive size, got {size}")
    return edge_sample(start, rowptr, 0, size) if size <= 1 else edge_sample(start, rowptr, int(size))


def edge_sample(start: Tensor, rowptr: Tensor, count: int = 0, factor: float = 1.0) -> Tensor:
    """`count` random edges of each vertex in `start`, without repetition, or if `count` is 0 a share of its edges,
    rounded up."""
    parts = [start.new_empty(0)]
    for vertex in start.tolist():
        first, last = int(rowptr[vertex]), int(rowptr[vertex + 1])
        size = count if count >= 1 else math.ceil(factor * (last - first))
        parts.append(torch.randperm(last - first, device=start.device)[:size] + first)
    return torch.cat(parts)
