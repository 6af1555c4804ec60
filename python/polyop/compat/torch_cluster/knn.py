# SPDX-License-Identifier: Apache-2.0
"""The nearest points. TorchScript compiles these functions."""

import torch
from torch import Tensor

from polyop.compat.torch_cluster.clouds import (
    as_matrix,
    edges,
    has_kernel,
    in_three_dimensions,
    pointers,
    queries_at_once,
)


def knn(
    x: Tensor,
    y: Tensor,
    k: int,
    batch_x: Tensor | None = None,
    batch_y: Tensor | None = None,
    cosine: bool = False,
    num_workers: int = 1,
    batch_size: int | None = None,
) -> Tensor:
    """The k points of x [N, F] nearest to each of y [M, F], within the same cloud: indices [2, E], of y and of x.

    `num_workers` has no effect: PyTorch's number of threads holds.
    """
    x, y = as_matrix(x), as_matrix(y)
    ends_x, ends_y = pointers(x, y, batch_x, batch_y, batch_size)
    return knn_in_clouds(x, y, k, ends_x, ends_y, cosine)


def knn_in_clouds(x: Tensor, y: Tensor, k: int, ends_x: Tensor, ends_y: Tensor, cosine: bool) -> Tensor:
    """`knn` of points [N, F] and [M, F] of clouds that end at ends_x and ends_y, from 0 on, on the CPU."""
    if x.numel() == 0 or y.numel() == 0:
        return torch.empty(2, 0, dtype=torch.long, device=x.device)
    if has_kernel(x) and has_kernel(y) and not cosine:
        found, _ = torch.ops.polyop.knn_query(
            torch.tensor(k), in_three_dimensions(x), ends_x[1:], in_three_dimensions(y), ends_y[1:]
        )
        rows = torch.arange(y.size(0)).unsqueeze(1).expand(found.shape)
        there = found >= 0
        return torch.stack([rows[there], found[there].long()])
    parts = [torch.empty(2, 0, dtype=torch.long, device=x.device)]
    for cloud in range(ends_x.size(0) - 1):
        first, last = int(ends_x[cloud]), int(ends_x[cloud + 1])
        points = x[first:last]
        step = queries_at_once(last - first)
        for start in range(int(ends_y[cloud]), int(ends_y[cloud + 1]), step):
            queries = y[start : min(start + step, int(ends_y[cloud + 1]))]
            distances = _distances(queries, points, cosine)
            nearest = distances.sort(dim=1, stable=True)[1][:, :k] + first  # of equal distances the lower index
            rows = torch.arange(start, start + queries.size(0), device=x.device).unsqueeze(1).expand(nearest.shape)
            parts.append(torch.stack([rows.flatten(), nearest.flatten()]))
    return torch.cat(parts, 1)


def _distances(queries: Tensor, points: Tensor, cosine: bool) -> Tensor:
    """Returns values [M, N] in the order of the distances."""
    if cosine:
        unit = torch.nn.functional.normalize(points.double(), 2.0, 1)
        return 1 - torch.nn.functional.normalize(queries.double(), 2.0, 1) @ unit.t()
    return torch.cdist(queries.double(), points.double(), compute_mode="donot_use_mm_for_euclid_dist")


def knn_graph(
    x: Tensor,
    k: int,
    batch: Tensor | None = None,
    loop: bool = False,
    flow: str = "source_to_target",
    cosine: bool = False,
    num_workers: int = 1,
    batch_size: int | None = None,
) -> Tensor:
    """Edges [2, E] between each point and its k nearest ones; `loop`: the point itself is one of them."""
    found = knn(x, x, k if loop else k + 1, batch, batch, cosine, num_workers, batch_size)
    return edges(found[0], found[1], flow, loop)
