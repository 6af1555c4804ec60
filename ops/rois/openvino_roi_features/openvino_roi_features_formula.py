# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's RoIAlign over a feature pyramid; each box is pooled from the level that fits its size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.roi_bins_formula import pool_from_levels, pool_upright


def formula(
    rois: Tensor, *feats: Tensor, output_size: int, sampling_ratio: int, pyramid_scales: Sequence[int], aligned: int
) -> Tensor:
    def pool(feat: Tensor, level_boxes: Tensor, scale: float) -> Tensor:
        return pool_upright(
            feat,
            level_boxes.new_zeros(len(level_boxes)),
            level_boxes * scale,
            (output_size, output_size),
            sampling_ratio,
            "avg",
            aligned,
        )

    return pool_from_levels(rois, rois[:, 2:] - rois[:, :2], feats, pyramid_scales, 56, pool)


def example(call: Call, pyramid_scales: Sequence[int], **_: Any) -> list[Tensor]:
    return [torch.tensor([[1.0, 1, 40, 30], [0, 2, 300, 600]]), *(torch.rand(1, 3, 6, 5) for _ in pyramid_scales)]
