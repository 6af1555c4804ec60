"""Precise RoI pooling: along each axis, what pixels weigh in the average over a bin; two products of matrices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1)


def _weights(low: Tensor, high: Tensor, bins: int, extent: int) -> Tensor:
    """Of `extent` pixels in the bins of rois that go from `low` to `high` [R]: [R, bins, extent]."""
    size = ((high - low) / bins)[:, None, None]
    some = torch.isfinite(low + high)[:, None, None] & (size > 0)
    size = torch.where(some, size, 1)
    start = torch.where(some, low[:, None, None], -3)  # outside
    first = start + size * torch.arange(bins, device=low.device).reshape(bins, 1)
    begin = first - torch.arange(extent, device=low.device)
    end = begin + size
    # On a pixel a clamp would pass the gradient on in both parts; relu does not.
    a, b = (-torch.relu(-t).clamp(max=1) for t in (begin, end))
    c, d = begin.clamp(0, 1), end.clamp(0, 1)
    area = (b - a) * (1 + (a + b) / 2) + (d - c) * (1 - (c + d) / 2)
    return torch.where(some, area / size, 0)


def _by_picture(features: Tensor, picture: Tensor, rows: Tensor) -> Tensor:
    """rows [R, oh, H] times the rois' pictures of features [N, C, H, W] -> [R, C, oh, W].

    Picture by picture, so that features are not copied for each roi; a tracer, which sees no pictures, copies them.
    """
    if torch.jit.is_tracing() or torch.compiler.is_compiling() or rows.is_meta or len(rows) == 0:
        return rows[:, None] @ features.index_select(0, picture)
    mine = [(picture == n).nonzero()[:, 0] for n in range(len(features))]
    parts = [torch.einsum("rph,chw->rcpw", rows[m], plane) for m, plane in zip(mine, features, strict=True)]
    return torch.cat(parts)[torch.cat(mine).argsort()]


def formula(features: Tensor, rois: Tensor, *, pooled_height: int, pooled_width: int, spatial_scale: float) -> Tensor:
    height, width = features.shape[2:]
    x1, y1, x2, y2 = (rois[:, 1:] * spatial_scale).unbind(1)
    rows, columns = _weights(y1, y2, pooled_height, height), _weights(x1, x2, pooled_width, width)
    return _by_picture(features, rois[:, 0].long(), rows) @ columns[:, None].transpose(2, 3)


def example(call: Call, **_: Any) -> list[Tensor]:
    return [torch.rand(2, 3, 6, 5), torch.tensor([[1.0, 1, 1, 4, 3], [0, 0, 2, 3, 6]])]
