# SPDX-License-Identifier: Apache-2.0
"""RoIAlign of rotated boxes whose orientation channels are shifted by the angle of the box.

Fractional shifts interpolate between two channels.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.roi_bins_formula import pool_rotated

DIFFERENTIABLE = (0,)


def formula(
    input: Tensor, rois: Tensor, *, pooled_height: int, pooled_width: int, spatial_scale: float, num_samples: int,
    num_orientations: int, clockwise: int,
) -> Tensor:  # fmt: skip
    boxes = torch.cat([rois[:, 1:5] * spatial_scale, rois[:, 5:]], 1)
    pooled = pool_rotated(input, rois[:, 0], boxes, (pooled_height, pooled_width), num_samples, 0, clockwise)
    shift = (rois[:, 5:].double() * num_orientations / (2 * math.pi)).float()
    whole = torch.floor(shift)
    part = (shift - whole).to(pooled.dtype)[:, :, None, None]
    channel = torch.arange(input.shape[1], device=input.device)
    orientation = channel % num_orientations
    source = orientation - whole.long()

    def shifted(orientations: Tensor) -> Tensor:
        channels = channel - orientation + orientations % num_orientations
        return pooled.gather(1, channels[:, :, None, None].expand_as(pooled))

    return (1 - part) * shifted(source) + part * shifted(source + 1)


def example(call: Call, *, num_orientations: int, **_: Any) -> list[Tensor]:
    boxes = torch.tensor([[1.0, 2, 3, 4, 3, 0.5], [0, 1, 2, 3, 6, -1]])
    return [torch.rand(2, 2 * num_orientations, 6, 5), boxes]
