# SPDX-License-Identifier: Apache-2.0
"""Clusters of a regular grid. TorchScript compiles this function."""

import torch
from torch import Tensor


def grid_cluster(pos: Tensor, size: Tensor, start: Tensor | None = None, end: Tensor | None = None) -> Tensor:
    """The number of each point's cell: pos [N, D], size [D] -> [N]. The first axis varies fastest."""
    pos = pos.reshape(-1, 1) if pos.dim() == 1 else pos
    if size.numel() != pos.size(1):
        raise ValueError("grid_cluster: expected a size for each dimension of pos")
    first = pos.amin(0) if start is None else start
    last = pos.amax(0) if end is None else end
    cells = ((last - first) / size).long() + 1
    strides = torch.cat([torch.ones(1, dtype=torch.long, device=pos.device), cells.cumprod(0)[:-1]])
    return (((pos - first) / size).long() * strides).sum(1)
