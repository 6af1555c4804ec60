"""RoIAlign of rotated boxes: bilinear samples of each bin, in the box's own axes, averaged."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.bilinear_formula import bilinear
from polyop.formulas.roi_bins_formula import bin_samples, by_samples, pool_bins

DIFFERENTIABLE = (0,)


def formula(
    input: Tensor, rois: Tensor, *, output_height: int, output_width: int, spatial_scale: float, sampling_ratio: int,
    aligned: int, clockwise: int,
) -> Tensor:  # fmt: skip
    centre = rois[:, 1:3] * spatial_scale - (0.5 if aligned else 0.0)
    size = rois[:, 3:5] * spatial_scale
    size = size if aligned else size.clamp(min=1)
    angle = -rois[:, 5] if clockwise else rois[:, 5]

    def pool(which: Any, ny: Any, nx: Any, counts: Tensor) -> Tensor:
        extent = size[which]
        v = bin_samples(-extent[:, 1] / 2, extent[:, 1], output_height, ny, counts[:, 0])[:, :, None, :, None]
        u = bin_samples(-extent[:, 0] / 2, extent[:, 0], output_width, nx, counts[:, 1])[:, None, :, None, :]
        turn, middle = angle[which][:, None, None, None, None], centre[which][:, :, None, None, None, None]
        cosine, sine = torch.cos(turn), torch.sin(turn)
        x = v * sine + u * cosine + middle[:, 0]
        y = v * cosine - u * sine + middle[:, 1]
        picture = rois[which, 0].long()[:, None, None, None, None].expand_as(y)
        return pool_bins(bilinear(input, picture, y, x, clamp=True), counts, "avg")

    return by_samples(size.flip(1), (output_height, output_width), sampling_ratio, pool)


def example(call: Call, **_: Any) -> list[Tensor]:
    return [torch.rand(2, 3, 6, 5), torch.tensor([[1.0, 2, 3, 4, 3, 0.5], [0, 1, 2, 3, 6, -1]])]
