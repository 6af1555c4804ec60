# SPDX-License-Identifier: Apache-2.0
"""Precise RoI pooling: two matrix products with the weights of pixels in the average over a bin, along each axis."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1)


def _weights(low: Tensor, high: Tensor, bins: int, extent: int) -> Tensor:
    """Computes the weights [R, bins, extent] of pixels in the bins of RoIs from `low` to `high` [R]."""
    size = ((high - low) / bins)[:, None, None]
    valid = torch.isfinite(low + high)[:, None, None] & (size > 0)
    size = torch.where(valid, size, 1)
    start = torch.where(valid, low[:, None, None], -3)  # outside
    first = start + size * torch.arange(bins, device=low.device).reshape(bins, 1)
    begin = first - torch.arange(extent, device=low.device)
    end = begin + size
    # At a pixel, clamp would propagate the gradient in both parts; relu does not.
    a, b = (-torch.relu(-t).clamp(max=1) for t in (begin, end))
    c, d = begin.clamp(0, 1), end.clamp(0, 1)
    area = (b - a) * (1 + (a + b) / 2) + (d - c) * (1 - (c + d) / 2)
    return torch.where(valid, area / size, 0)


def _by_image(features: Tensor, image: Tensor, rows: Tensor) -> Tensor:
    """Multiplies rows [R, oh, H] with the images of the RoIs in features [N, C, H, W], to [R, C, oh, W].

    Works image by image, so that features are not copied for each RoI. Under a tracer, which has no values, it copies.
    """
    if torch.jit.is_tracing() or torch.compiler.is_compiling() or rows.is_meta or len(rows) == 0:
        return rows[:, None] @ features.index_select(0, image)
    rois_of = [(image == n).nonzero()[:, 0] for n in range(len(features))]
    parts = [torch.einsum("rph,chw->rcpw", rows[m], plane) for m, plane in zip(rois_of, features, strict=True)]
    return torch.cat(parts)[torch.cat(rois_of).argsort()]


def formula(features: Tensor, rois: Tensor, *, pooled_height: int, pooled_width: int, spatial_scale: float) -> Tensor:
    height, width = features.shape[2:]
    x1, y1, x2, y2 = (rois[:, 1:] * spatial_scale).unbind(1)
    rows, columns = _weights(y1, y2, pooled_height, height), _weights(x1, x2, pooled_width, width)
    return _by_image(features, rois[:, 0].long(), rows) @ columns[:, None].transpose(2, 3)


def example(call: Call, **_: Any) -> list[Tensor]:
    return [torch.rand(2, 3, 6, 5), torch.tensor([[1.0, 1, 1, 4, 3], [0, 0, 2, 3, 6]])]
