# SPDX-License-Identifier: Apache-2.0
"""The nearest point."""

import torch
from torch import Tensor

from polyop.compat.torch_cluster.clouds import as_matrix
from polyop.compat.torch_cluster.knn import knn


def nearest(x: Tensor, y: Tensor, batch_x: Tensor | None = None, batch_y: Tensor | None = None) -> Tensor:
    """The index of the point of y [M, F] nearest to each of x [N, F], within the same cloud -> [N]."""
    x, y = as_matrix(x), as_matrix(y)
    if x.size(1) != y.size(1):
        raise ValueError(f"nearest: expected points of {x.size(1)} dimensions, got {y.size(1)}")
    batches = []
    for name, points, batch in (("batch_x", x, batch_x), ("batch_y", y, batch_y)):
        index = torch.zeros(points.size(0), dtype=torch.long, device=x.device) if batch is None else batch
        if bool((index.diff() < 0).any()):
            raise ValueError(f"nearest: expected {name} in ascending order")
        if index.numel() != points.size(0):
            raise ValueError(f"nearest: expected {points.size(0)} elements of {name}, got {index.numel()}")
        batches.append(index)
    if not torch.equal(batches[0].unique_consecutive(), batches[1].unique_consecutive()):
        raise ValueError("nearest: expected the same clouds in batch_x and batch_y")
    return knn(y, x, 1, batches[1], batches[0])[1]
