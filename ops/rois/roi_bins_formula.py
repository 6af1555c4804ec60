# SPDX-License-Identifier: Apache-2.0
"""RoI pooling of upright and of rotated boxes with bilinear samples, in torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from polyop.formulas.bilinear_formula import bilinear


def _by_samples(
    sizes: Tensor, bins: tuple[int, int], ratio: int, pool: Callable[[Any, Any, Any, Tensor], Tensor]
) -> Tensor:
    """Pool RoIs whose `sizes` [R, 2] are (height, width) in pixels.

    `pool(which, ny, nx, counts)` pools the RoIs `which` with up to ny times nx samples per bin; a RoI uses the first
    counts [R', 2] of them. RoIs are grouped by counts, so that a large RoI does not slow down small ones. A tracer,
    which does not know the counts, pools all RoIs in one group.
    """
    if ratio > 0:
        return pool(slice(None), ratio, ratio, sizes.new_full((), ratio).expand(sizes.shape))
    counts = torch.ceil(sizes / sizes.new_tensor(bins)).clamp(min=0)
    counts = torch.where(counts < torch.inf, counts, 0)  # also for NaN
    if sizes.is_meta or len(sizes) == 0:  # there are no values, and the shape does not depend on them
        return pool(slice(None), 1, 1, counts)
    if torch.jit.is_tracing() or torch.compiler.is_compiling():
        largest = torch.cat([counts, counts.new_ones(1, 2)]).amax(0)  # not empty if there are no RoIs
        return pool(slice(None), largest[0], largest[1], counts)
    pieces, indices = [], []
    for ny, nx in counts.unique(dim=0).tolist():
        mine = (counts == counts.new_tensor([ny, nx])).all(1).nonzero()[:, 0]
        indices.append(mine)
        pieces.append(pool(mine, max(int(ny), 1), max(int(nx), 1), counts[mine]))
    return torch.cat(pieces)[torch.cat(indices).argsort()]


def _bin_samples(start: Tensor, size: Tensor, bins: int, samples: Any, counts: Tensor) -> Tensor:
    """Return the positions of the samples of an axis [R, bins, samples]."""
    at = torch.arange(samples, dtype=start.dtype, device=start.device) + 0.5
    bin_of = torch.arange(bins, device=start.device).reshape(bins, 1)
    part = at / counts.clamp(min=1)[:, None, None]
    return start[:, None, None] + size[:, None, None] / bins * (bin_of + part)


def _pool_bins(samples: Tensor, counts: Tensor, mode: str) -> Tensor:
    """samples [R, oh, ow, ny, nx, C] -> [R, C, oh, ow]. RoI r uses the first counts[r] of ny and nx."""
    ny, nx = samples.shape[3:5]
    rows = torch.arange(ny, device=samples.device).reshape(ny, 1) < counts[:, :1, None]
    columns = torch.arange(nx, device=samples.device).reshape(1, nx) < counts[:, 1:, None]
    number = counts[:, 0] * counts[:, 1]
    some = (rows & columns)[:, None, None, :, :, None]
    if mode == "avg":
        pooled = torch.where(some, samples, 0).sum((3, 4)) / number.clamp(min=1)[:, None, None, None]
    else:
        samples = torch.where(some & (samples == samples), samples, -torch.inf)
        pooled = samples.amax((3, 4))
        pooled = torch.where(pooled > -torch.inf, pooled, 0)  # for bins without samples
    return pooled.permute(0, 3, 1, 2)


def pool_upright(
    input: Tensor, image: Tensor, corners: Tensor, bins: tuple[int, int], sampling_ratio: int, mode: str, aligned: int,
    weighted: bool = False, shift: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Pool boxes (x1, y1, x2, y2) [R, 4], in pixels of `input` [N, C, H, W], with batch indices [R] -> [R, C, oh, ow].

    With `weighted`, the largest weighted pixel of a sample replaces the sample. Bins are moved by `shift`
    [R, 2, oh, ow], which is (x, y) in pixels.
    """
    corners = corners - (0.5 if aligned else 0.0)
    size = corners[:, 2:] - corners[:, :2]
    size = size if aligned else size.clamp(min=1)

    def pool(which: Any, ny: Any, nx: Any, counts: Tensor) -> Tensor:
        start, extent = corners[which], size[which]
        y = _bin_samples(start[:, 1], extent[:, 1], bins[0], ny, counts[:, 0])[:, :, None, :, None]
        x = _bin_samples(start[:, 0], extent[:, 0], bins[1], nx, counts[:, 1])[:, None, :, None, :]
        if shift is not None:
            x, y = (at + shift[which][:, i, :, :, None, None] for i, at in enumerate((x, y)))
        y, x = torch.broadcast_tensors(y, x)
        index = image[which].long()[:, None, None, None, None].expand_as(y)
        return _pool_bins(bilinear(input, index, y, x, clamp=True, largest=weighted), counts, mode)

    return _by_samples(size.flip(1), bins, sampling_ratio, pool)


def pool_rotated(
    input: Tensor,
    image: Tensor,
    boxes: Tensor,
    bins: tuple[int, int],
    sampling_ratio: int,
    aligned: int,
    clockwise: int,
) -> Tensor:
    """Average boxes (centre x, centre y, width, height, angle) [R, 5], in pixels of `input` -> [R, C, oh, ow]."""
    centre = boxes[:, :2] - (0.5 if aligned else 0.0)
    size = boxes[:, 2:4] if aligned else boxes[:, 2:4].clamp(min=1)
    angle = -boxes[:, 4] if clockwise else boxes[:, 4]

    def pool(which: Any, ny: Any, nx: Any, counts: Tensor) -> Tensor:
        extent = size[which]
        v = _bin_samples(-extent[:, 1] / 2, extent[:, 1], bins[0], ny, counts[:, 0])[:, :, None, :, None]
        u = _bin_samples(-extent[:, 0] / 2, extent[:, 0], bins[1], nx, counts[:, 1])[:, None, :, None, :]
        rotation, middle = angle[which][:, None, None, None, None], centre[which][:, :, None, None, None, None]
        cosine, sine = torch.cos(rotation), torch.sin(rotation)
        x = v * sine + u * cosine + middle[:, 0]
        y = v * cosine - u * sine + middle[:, 1]
        index = image[which].long()[:, None, None, None, None].expand_as(y)
        return _pool_bins(bilinear(input, index, y, x, clamp=True), counts, "avg")

    return _by_samples(size.flip(1), bins, sampling_ratio, pool)


def pool_free_bins(input: Tensor, image: Tensor, centre: Tensor, size: Tensor, sampling_ratio: int) -> Tensor:
    """Average bins at arbitrary positions -> [R, C, oh, ow].

    Bins have the centres (x, y) [R, oh, ow, 2] and, per RoI, the size (width, height) [R, 2], in pixels.
    """

    def pool(which: Any, ny: Any, nx: Any, counts: Tensor) -> Tensor:
        extent, at = size[which], centre[which][..., None, None, :]
        y = at[..., 1] + _bin_samples(-extent[:, 1] / 2, extent[:, 1], 1, ny, counts[:, 0])[:, :, None, :, None]
        x = at[..., 0] + _bin_samples(-extent[:, 0] / 2, extent[:, 0], 1, nx, counts[:, 1])[:, :, None, None, :]
        y, x = torch.broadcast_tensors(y, x)
        index = image[which].long()[:, None, None, None, None].expand_as(y)
        return _pool_bins(bilinear(input, index, y, x, clamp=True), counts, "avg")

    return _by_samples(size.flip(1), (1, 1), sampling_ratio, pool)


def pool_from_levels(
    boxes: Tensor,
    size: Tensor,
    feats: Sequence[Tensor],
    strides: Sequence[float],
    finest_scale: int,
    pool: Callable[[Tensor, Tensor, float], Tensor],
) -> Tensor:
    """Pool each box from the level that fits its `size` [R, 2]; `pool(feature map, boxes, scale)` pools from one level.

    Every level pools all boxes, those of other levels as empty boxes, because the number of boxes per level is not
    static.
    """
    area = (size[:, 0] * size[:, 1]).sqrt() / finest_scale
    level = torch.where(area > 0, torch.log2(area + 1e-6).floor(), 0).clamp(0, len(feats) - 1)
    total: Tensor | int = 0
    for i, (feat, stride) in enumerate(zip(feats, strides, strict=True)):
        mine = level == i
        pooled = pool(feat, torch.where(mine[:, None], boxes, 0), 1 / stride)
        total = total + torch.where(mine[:, None, None, None], pooled, 0)
    return total
