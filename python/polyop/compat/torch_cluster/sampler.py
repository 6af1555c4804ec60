"""Samples of neighbours."""

import math

import torch
from torch import Tensor


def neighbor_sampler(start: Tensor, rowptr: Tensor, size: float) -> Tensor:
    """Indices of random edges of each vertex in `start`, without repetition. A size up to 1 is a share of the vertex's
    edges, rounded up, and a larger one their number."""
    if size <= 0:
        raise ValueError(f"neighbor_sampler: expected a positive size, got {size}")
    parts = [start.new_empty(0)]
    for vertex in start.tolist():
        first, last = int(rowptr[vertex]), int(rowptr[vertex + 1])
        count = math.ceil(size * (last - first)) if size <= 1 else int(size)
        parts.append(torch.randperm(last - first, device=start.device)[:count] + first)
    return torch.cat(parts)
