# SPDX-License-Identifier: Apache-2.0
"""RoI max pooling: finds the largest pixels in columns of bins, then in rows of bins, and gathers them."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0,)

_PIXELS = 1 << 24  # processed at a time


def _rounded(x: Tensor) -> Tensor:
    """Rounds halves away from zero."""
    return torch.sign(x) * torch.floor(x.abs() + 0.5)


def _bins(low: Tensor, high: Tensor, scale: float, rounded: bool, bins: int, extent: int) -> Tensor:
    """Returns a mask [R, bins, extent] of the pixels in the bins of boxes [R]."""
    number = torch.arange(bins, device=low.device)
    if rounded:
        start, end = (_rounded((v.float() * scale).double()) for v in (low, high))
        size = ((end - start + 1).clamp(min=1).float() / bins)[:, None]
        first = start[:, None] + torch.floor(number.float() * size).double()
        last = start[:, None] + torch.ceil((number + 1).float() * size).double()
    else:
        scale = torch.tensor(scale, dtype=torch.float32).double().item()
        start = low.double() * scale
        size = (((high.double() + 1) * scale - start) / bins)[:, None]
        first = torch.floor(start[:, None] + number.double() * size)
        last = torch.ceil(start[:, None] + (number + 1).double() * size)
    pixel = torch.arange(extent, device=low.device).double()
    valid = torch.isfinite(first + last)[..., None] & (size > 0)[..., None]
    return valid & (pixel >= first[..., None]) & (pixel < last[..., None])


def _largest(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the largest of values [..., P] in each bin of `mask` [..., bins, P], and its index: [..., bins]."""
    found = [torch.where(t, values, -torch.inf).max(-1) for t in mask.unbind(-2)]
    return torch.stack([f.values for f in found], -1), torch.stack([f.indices for f in found], -1)


def _largest_indices(pixels: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Returns the indices [R, C, rows of bins, columns of bins] of the largest of pixels [R, C, H, W]; -1 for none."""
    pixels = torch.where(pixels == pixels, pixels, -torch.inf)
    across, x = _largest(pixels, columns[:, None, None])  # [R, C, H, columns of bins]
    maximum, y = _largest(across.transpose(2, 3), rows[:, None, None])  # [R, C, columns of bins, rows of bins]
    x = x.transpose(2, 3).gather(3, y)
    return torch.where(maximum > -torch.inf, y * pixels.shape[3] + x, -1).transpose(2, 3)


def formula(
    input: Tensor, rois: Tensor, *, output_height: int, output_width: int, spatial_scale: float, rounded: bool
) -> tuple[Tensor, Tensor]:
    _, channels, height, width = input.shape
    image = rois[:, 0].long()
    x1, y1, x2, y2 = rois[:, 1:].unbind(1)
    valid = torch.isfinite(rois).all(1)[:, None, None]
    with torch.no_grad():
        rows = _bins(y1, y2, spatial_scale, rounded, output_height, height) & valid
        columns = _bins(x1, x2, spatial_scale, rounded, output_width, width) & valid
        if torch.jit.is_tracing() or torch.compiler.is_compiling() or rois.is_meta or len(rois) == 0:
            argmax = _largest_indices(input.index_select(0, image), rows, columns)
        else:  # a batch of boxes at a time, so that the pixels are not copied for all boxes at once
            batch = max(1, _PIXELS // max(1, channels * height * width))
            parts = zip(*(t.split(batch) for t in (image, rows, columns)), strict=True)
            argmax = torch.cat([_largest_indices(input.index_select(0, p), r, c) for p, r, c in parts])
    plane = image[:, None] * channels + torch.arange(channels, device=rois.device)
    pixel = plane[:, :, None, None] * (height * width) + argmax.clamp(min=0)
    return torch.where(argmax >= 0, input.flatten()[pixel], 0), argmax.int()


def example(call: Call, *, output_height: int, output_width: int, spatial_scale: float, rounded: bool) -> list[Tensor]:
    return [torch.rand(2, 3, 6, 5), torch.tensor([[1.0, 1, 1, 4, 3], [0, 0, 2, 3, 6]])]
