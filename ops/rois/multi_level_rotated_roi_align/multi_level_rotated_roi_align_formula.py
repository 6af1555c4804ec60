# SPDX-License-Identifier: Apache-2.0
"""RoIAlign of rotated boxes over a feature pyramid; each box is pooled from the level that fits its size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.roi_bins_formula import pool_from_levels, pool_rotated

DIFFERENTIABLE = (1,)


def formula(
    rois: Tensor, *feats: Tensor, output_height: int, output_width: int, sampling_ratio: int, aligned: int,
    clockwise: int, featmap_strides: Sequence[float], roi_scale_factor: float, finest_scale: int,
) -> Tensor:  # fmt: skip
    size, bins = rois[:, 3:5], (output_height, output_width)
    grown = torch.cat([rois[:, 1:3], size * (max(roi_scale_factor, 0) or 1), rois[:, 5:]], 1)

    def pool(feat: Tensor, level_boxes: Tensor, scale: float) -> Tensor:
        boxes = torch.cat([level_boxes[:, :4] * scale, level_boxes[:, 4:]], 1)
        return pool_rotated(feat, rois[:, 0], boxes, bins, sampling_ratio, aligned, clockwise)

    return pool_from_levels(grown, size, feats, featmap_strides, finest_scale, pool)


def example(call: Call, featmap_strides: Sequence[float], **_: Any) -> list[Tensor]:
    rois = torch.tensor([[0.0, 20, 10, 40, 30, 0.5], [0, 100, 200, 300, 600, -1]])
    return [rois, *(torch.rand(2, 3, 6, 5) for _ in featmap_strides)]
