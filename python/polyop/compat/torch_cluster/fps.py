# SPDX-License-Identifier: Apache-2.0
"""Furthest point sampling."""

import torch
from torch import Tensor

from polyop.compat.torch_cluster.clouds import has_kernel, in_three_dimensions


def fps(
    src: Tensor,
    batch: Tensor | None = None,
    ratio: Tensor | float | None = None,
    random_start: bool = True,
    batch_size: int | None = None,
    ptr: Tensor | list[int] | None = None,
) -> Tensor:
    """Indices of points of src [N, F] that are far from each other: ratio (0.5) of the points of each cloud, rounded
    up. The first is random, or with random_start=False the cloud's first."""
    share = torch.tensor(0.5)
    if isinstance(ratio, float):
        share = torch.tensor(ratio)
    elif ratio is not None:
        share = ratio
    ends = torch.tensor([0, src.size(0)])
    if isinstance(ptr, list):
        ends = torch.tensor(ptr)
    elif ptr is not None:
        ends = ptr
    elif batch is not None:
        if batch.numel() != src.size(0):
            raise ValueError("fps: expected a batch index for each point")
        clouds = int(batch.max()) + 1 if batch_size is None else batch_size
        ends = torch.cat(
            [torch.zeros(1, dtype=torch.long, device=src.device), batch.bincount(minlength=clouds).cumsum(0)]
        )
    src = src.reshape(src.size(0), -1)
    shares = share.to("cpu").float().expand(ends.numel() - 1)
    counts = (ends.diff().cpu().float() * shares).ceil().long()
    parts = [torch.empty(0, dtype=torch.long, device=src.device)]
    for cloud in range(ends.numel() - 1):
        first, count = int(ends[cloud]), int(counts[cloud])
        points = src[first : int(ends[cloud + 1])]
        if count > 0:
            start = int(torch.randint(points.size(0), [1])) if random_start else 0
            parts.append(_sample(points, count, start) + first)
    return torch.cat(parts)


def _sample(points: Tensor, count: int, start: int) -> Tensor:
    """Returns the indices of `count` points of one cloud."""
    if has_kernel(points):
        order = in_three_dimensions(points).roll(-start, 0).unsqueeze(0)
        sampled = torch.ops.polyop.furthest_point_sampling(order, num_points=count)[0]
        return (sampled.long() + start) % points.size(0)
    chosen = torch.empty(count, dtype=torch.long, device=points.device)
    chosen[0] = start
    distances = (points - points[start]).square().sum(1)
    for i in range(1, count):
        chosen[i] = distances.argmax()
        distances = torch.minimum(distances, (points - points[chosen[i]]).square().sum(1))
    return chosen
