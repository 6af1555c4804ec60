"""Pooling of rois by samples, in torch: what the formulas of RoIAlign's kinds share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def by_samples(
    sizes: Tensor, bins: tuple[int, int], ratio: int, pool: Callable[[Any, Any, Any, Tensor], Tensor]
) -> Tensor:
    """Pools rois whose `sizes` [R, 2] are (height, width) in pixels.

    `pool(which, ny, nx, counts)` pools the rois `which` with at most ny times nx samples a bin, of which the first
    counts [R', 2] are a roi's. Rois come in groups of equal counts, so that a large one costs the small ones nothing; a
    tracer, which sees no counts, gets all in one.
    """
    if ratio > 0:
        return pool(slice(None), ratio, ratio, sizes.new_full((), ratio).expand(sizes.shape))
    counts = torch.ceil(sizes / sizes.new_tensor(bins)).clamp(min=0)
    counts = torch.where(counts < torch.inf, counts, 0)  # of NaN, too
    if sizes.is_meta or len(sizes) == 0:  # no sizes to look at, and the shape is the same
        return pool(slice(None), 1, 1, counts)
    if torch.jit.is_tracing() or torch.compiler.is_compiling():
        most = counts.amax(0)
        return pool(slice(None), most[0], most[1], counts)
    pieces, places = [], []
    for ny, nx in counts.unique(dim=0).tolist():
        mine = (counts == counts.new_tensor([ny, nx])).all(1).nonzero()[:, 0]
        places.append(mine)
        pieces.append(pool(mine, int(ny), int(nx), counts[mine]))
    return torch.cat(pieces)[torch.cat(places).argsort()]


def bin_samples(start: Tensor, size: Tensor, bins: int, samples: Any, counts: Tensor) -> Tensor:
    """Where the samples of an axis lie: [R, bins, samples]."""
    at = torch.arange(samples, dtype=start.dtype, device=start.device) + 0.5
    bin_of = torch.arange(bins, device=start.device).reshape(bins, 1)
    part = at / counts.clamp(min=1)[:, None, None]
    return start[:, None, None] + size[:, None, None] / bins * (bin_of + part)


def pool_bins(samples: Tensor, counts: Tensor, mode: str) -> Tensor:
    """[R, oh, ow, ny, nx, C], of which the first counts [R, 2] of ny and nx are a roi's -> [R, C, oh, ow]."""
    ny, nx = samples.shape[3:5]
    rows = torch.arange(ny, device=samples.device).reshape(ny, 1) < counts[:, :1, None]
    columns = torch.arange(nx, device=samples.device).reshape(1, nx) < counts[:, 1:, None]
    number = counts[:, 0] * counts[:, 1]
    some = (rows & columns)[:, None, None, :, :, None]
    if mode == "avg":
        pooled = torch.where(some, samples, 0).sum((3, 4)) / number.clamp(min=1)[:, None, None, None]
    else:
        samples = torch.where(some & (samples == samples), samples, -torch.inf)
        lowest = samples.new_full((), -torch.inf).expand(*samples.shape[:3], 1, 1, samples.shape[5])
        pooled = torch.cat([samples.flatten(3, 4), lowest.flatten(3, 4)], 3).amax(3)  # ny or nx may be 0
        pooled = torch.where(pooled > -torch.inf, pooled, 0)
    return pooled.permute(0, 3, 1, 2)
