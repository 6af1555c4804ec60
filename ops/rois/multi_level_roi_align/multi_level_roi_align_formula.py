# SPDX-License-Identifier: Apache-2.0
"""RoIAlign over a feature pyramid; each box is pooled from the level that fits its size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.roi_bins_formula import pool_from_levels, pool_upright

DIFFERENTIABLE = (1,)


def formula(
    rois: Tensor, *feats: Tensor, output_height: int, output_width: int, sampling_ratio: int, pool_mode: str,
    aligned: int, featmap_strides: Sequence[float], roi_scale_factor: float, finest_scale: int,
) -> Tensor:  # fmt: skip
    boxes, bins = rois[:, 1:], (output_height, output_width)
    size, centre = boxes[:, 2:] - boxes[:, :2], (boxes[:, :2] + boxes[:, 2:]) / 2
    half = size * (max(roi_scale_factor, 0) or 1) / 2
    grown = torch.cat([centre - half, centre + half], 1)

    def pool(feat: Tensor, level_boxes: Tensor, scale: float) -> Tensor:
        return pool_upright(feat, rois[:, 0], level_boxes * scale, bins, sampling_ratio, pool_mode, aligned)

    return pool_from_levels(grown, size, feats, featmap_strides, finest_scale, pool)


def example(call: Call, featmap_strides: Sequence[float], **_: Any) -> list[Tensor]:
    rois = torch.tensor([[0.0, 1, 1, 40, 30], [0, 0, 2, 300, 600]])
    return [rois, *(torch.rand(2, 3, 6, 5) for _ in featmap_strides)]
