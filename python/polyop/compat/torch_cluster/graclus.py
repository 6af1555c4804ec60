# SPDX-License-Identifier: Apache-2.0
"""Pairs of neighbouring vertices. TorchScript compiles this function."""

import torch
from torch import Tensor


def graclus_cluster(row: Tensor, col: Tensor, weight: Tensor | None = None, num_nodes: int | None = None) -> Tensor:
    """Matches each vertex with one free neighbour at most: that of the largest weight, or a random one -> the smaller
    index of each pair, [num_nodes]."""
    if row.numel() != col.numel():
        raise ValueError("graclus_cluster: expected as many elements of col as of row")
    if num_nodes is None:
        num_nodes = max(int(row.max()), int(col.max())) + 1 if row.numel() > 0 else 0
    others = row != col
    row, col = row[others], col[others]
    if weight is None:
        order = torch.randperm(row.size(0), device=row.device)
    else:
        order = weight[others].float().argsort(descending=True)
    row, col = row[order], col[order]
    order = row.argsort(stable=True)
    ends = torch.cat([row.new_zeros([1]), row.bincount(minlength=num_nodes).cumsum(0)])
    first = torch.jit.annotate(list[int], ends.tolist())
    neighbours = torch.jit.annotate(list[int], col[order].tolist())
    vertices = torch.jit.annotate(list[int], torch.randperm(num_nodes).tolist())
    cluster = [-1] * num_nodes
    for vertex in vertices:
        if cluster[vertex] >= 0:
            continue
        cluster[vertex] = vertex
        for edge in range(first[vertex], first[vertex + 1]):
            other = neighbours[edge]
            if cluster[other] < 0:
                cluster[vertex] = min(vertex, other)
                cluster[other] = min(vertex, other)
                break
    return torch.tensor(cluster, dtype=torch.long, device=row.device)
