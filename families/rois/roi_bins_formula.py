"""Pooling of upright and of turned boxes by bilinear samples, in torch: what the formulas of RoIAlign's kinds share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from polyop.formulas.bilinear_formula import bilinear


def _by_samples(
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
        most = torch.cat([counts, counts.new_ones(1, 2)]).amax(0)  # of no rois, too
        return pool(slice(None), most[0], most[1], counts)
    pieces, places = [], []
    for ny, nx in counts.unique(dim=0).tolist():
        mine = (counts == counts.new_tensor([ny, nx])).all(1).nonzero()[:, 0]
        places.append(mine)
        pieces.append(pool(mine, max(int(ny), 1), max(int(nx), 1), counts[mine]))
    return torch.cat(pieces)[torch.cat(places).argsort()]


def _bin_samples(start: Tensor, size: Tensor, bins: int, samples: Any, counts: Tensor) -> Tensor:
    """Where the samples of an axis lie: [R, bins, samples]."""
    at = torch.arange(samples, dtype=start.dtype, device=start.device) + 0.5
    bin_of = torch.arange(bins, device=start.device).reshape(bins, 1)
    part = at / counts.clamp(min=1)[:, None, None]
    return start[:, None, None] + size[:, None, None] / bins * (bin_of + part)


def _pool_bins(samples: Tensor, counts: Tensor, mode: str) -> Tensor:
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
        pooled = samples.amax((3, 4))
        pooled = torch.where(pooled > -torch.inf, pooled, 0)  # a bin without samples
    return pooled.permute(0, 3, 1, 2)


def pool_upright(
    input: Tensor, picture: Tensor, corners: Tensor, bins: tuple[int, int], sampling_ratio: int, mode: str, aligned: int,
    weighted: bool = False, shift: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Boxes (x1, y1, x2, y2) [R, 4] in pixels of `input` [N, C, H, W], of the pictures [R] -> [R, C, oh, ow].

    With `weighted` the greatest weighted pixel of a sample is pooled instead of the sample. Bins are moved by `shift`
    [R, 2, oh, ow], (x, y) in pixels.
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
        index = picture[which].long()[:, None, None, None, None].expand_as(y)
        return _pool_bins(bilinear(input, index, y, x, clamp=True, largest=weighted), counts, mode)

    return _by_samples(size.flip(1), bins, sampling_ratio, pool)


def pool_turned(
    input: Tensor,
    picture: Tensor,
    boxes: Tensor,
    bins: tuple[int, int],
    sampling_ratio: int,
    aligned: int,
    clockwise: int,
) -> Tensor:
    """The same of boxes (centre x, centre y, width, height, angle) [R, 5], averaged."""
    centre = boxes[:, :2] - (0.5 if aligned else 0.0)
    size = boxes[:, 2:4] if aligned else boxes[:, 2:4].clamp(min=1)
    angle = -boxes[:, 4] if clockwise else boxes[:, 4]

    def pool(which: Any, ny: Any, nx: Any, counts: Tensor) -> Tensor:
        extent = size[which]
        v = _bin_samples(-extent[:, 1] / 2, extent[:, 1], bins[0], ny, counts[:, 0])[:, :, None, :, None]
        u = _bin_samples(-extent[:, 0] / 2, extent[:, 0], bins[1], nx, counts[:, 1])[:, None, :, None, :]
        turn, middle = angle[which][:, None, None, None, None], centre[which][:, :, None, None, None, None]
        cosine, sine = torch.cos(turn), torch.sin(turn)
        x = v * sine + u * cosine + middle[:, 0]
        y = v * cosine - u * sine + middle[:, 1]
        index = picture[which].long()[:, None, None, None, None].expand_as(y)
        return _pool_bins(bilinear(input, index, y, x, clamp=True), counts, "avg")

    return _by_samples(size.flip(1), bins, sampling_ratio, pool)


def pool_placed(input: Tensor, picture: Tensor, middle: Tensor, size: Tensor, sampling_ratio: int) -> Tensor:
    """Bins that lie anywhere, averaged: around the points (x, y) `middle` [R, oh, ow, 2], all of a roi of one size
    (width, height) [R, 2], in pixels."""

    def pool(which: Any, ny: Any, nx: Any, counts: Tensor) -> Tensor:
        extent, at = size[which], middle[which][..., None, None, :]
        y = at[..., 1] + _bin_samples(-extent[:, 1] / 2, extent[:, 1], 1, ny, counts[:, 0])[:, :, None, :, None]
        x = at[..., 0] + _bin_samples(-extent[:, 0] / 2, extent[:, 0], 1, nx, counts[:, 1])[:, :, None, None, :]
        y, x = torch.broadcast_tensors(y, x)
        index = picture[which].long()[:, None, None, None, None].expand_as(y)
        return _pool_bins(bilinear(input, index, y, x, clamp=True), counts, "avg")

    return _by_samples(size.flip(1), (1, 1), sampling_ratio, pool)


def pool_from_levels(
    boxes: Tensor, size: Tensor, feats: Sequence[Tensor], strides: Sequence[float], finest_scale: int,
    pool: Callable[[Tensor, Tensor, float], Tensor],
) -> Tensor:  # fmt: skip
    """Each box from the level of its `size` [R, 2]; `pool(feature map, boxes, scale)` pools boxes of one.

    Every level pools all boxes, those of others without an extent: how many a level has is no fixed size.
    """
    area = (size[:, 0] * size[:, 1]).sqrt() / finest_scale
    level = torch.where(area > 0, torch.log2(area + 1e-6).floor(), 0).clamp(0, len(feats) - 1)
    total: Tensor | int = 0
    for i, (feat, stride) in enumerate(zip(feats, strides, strict=True)):
        mine = level == i
        pooled = pool(feat, torch.where(mine[:, None], boxes, 0), 1 / stride)
        total = total + torch.where(mine[:, None, None, None], pooled, 0)
    return total
