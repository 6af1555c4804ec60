# SPDX-License-Identifier: Apache-2.0
"""The points within a distance. TorchScript compiles these functions."""

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


def radius(
    x: Tensor,
    y: Tensor,
    r: float,
    batch_x: Tensor | None = None,
    batch_y: Tensor | None = None,
    max_num_neighbors: int = 32,
    num_workers: int = 1,
    batch_size: int | None = None,
    ignore_same_index: bool = False,
) -> Tensor:
    """The points of x [N, F] closer than r to each of y [M, F], within the same cloud: indices [2, E], of y and of x.

    Where there are more than `max_num_neighbors`, the first ones are returned. `ignore_same_index` omits points of the
    query's own index. `num_workers` has no effect: PyTorch's number of threads holds.
    """
    x, y = as_matrix(x), as_matrix(y)
    ends_x, ends_y = pointers(x, y, batch_x, batch_y, batch_size)
    return radius_in_clouds(x, y, r, ends_x, ends_y, max_num_neighbors, ignore_same_index)


def radius_in_clouds(
    x: Tensor, y: Tensor, r: float, ends_x: Tensor, ends_y: Tensor, max_num_neighbors: int, ignore_same_index: bool
) -> Tensor:
    """`radius` of points [N, F] and [M, F] of clouds that end at ends_x and ends_y, from 0 on, on the CPU."""
    if x.numel() == 0 or y.numel() == 0:
        return torch.empty(2, 0, dtype=torch.long, device=x.device)
    kernel = has_kernel(x) and has_kernel(y)
    most = max_num_neighbors + 1 if ignore_same_index else max_num_neighbors
    parts = [torch.empty(2, 0, dtype=torch.long, device=x.device)]
    for cloud in range(ends_x.size(0) - 1):
        first, last = int(ends_x[cloud]), int(ends_x[cloud + 1])
        begin, end = int(ends_y[cloud]), int(ends_y[cloud + 1])
        if first == last or begin == end:
            continue
        step = queries_at_once(min(most, last - first) if kernel else last - first)
        for start in range(begin, end, step):
            queries = y[start : min(start + step, end)]
            found = _within(queries, x[first:last], r, min(most, last - first), kernel)
            rows, columns = found[0] + start, found[1] + first
            if ignore_same_index:
                others = rows != columns
                rows, columns = rows[others], columns[others]
            rank = torch.arange(rows.size(0), device=x.device) - torch.searchsorted(rows, rows)
            kept = rank < max_num_neighbors
            parts.append(torch.stack([rows[kept], columns[kept]]))
    return torch.cat(parts, 1)


def _within(queries: Tensor, points: Tensor, r: float, most: int, kernel: bool) -> Tensor:
    """Returns the indices [2, E] of queries and of at most the first `most` points, both ascending."""
    if not kernel:
        is_near = torch.cdist(queries.double(), points.double(), compute_mode="donot_use_mm_for_euclid_dist") < r
        return is_near.nonzero().t().contiguous()
    counts, indices = torch.ops.polyop.grid_ball_query(
        in_three_dimensions(points).unsqueeze(0), in_three_dimensions(queries).unsqueeze(0), radius=r, nsample=most
    )
    is_found = torch.arange(most).unsqueeze(0) < counts[0].unsqueeze(1)
    rows = torch.arange(queries.size(0)).unsqueeze(1).expand(is_found.shape)
    return torch.stack([rows[is_found], indices[0][is_found].long()])


def radius_graph(
    x: Tensor,
    r: float,
    batch: Tensor | None = None,
    loop: bool = False,
    max_num_neighbors: int = 32,
    flow: str = "source_to_target",
    num_workers: int = 1,
    batch_size: int | None = None,
) -> Tensor:
    """Edges [2, E] between points that are closer than r; `loop`: also from each point to itself."""
    found = radius(x, x, r, batch, batch, max_num_neighbors, num_workers, batch_size, not loop)
    return edges(found[0], found[1], flow, True)
