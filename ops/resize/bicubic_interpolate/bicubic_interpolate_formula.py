# SPDX-License-Identifier: Apache-2.0
"""Bicubic resizing by fixed scales: ONNX's Resize."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from polyop.formulas import Call, floor_scale

DIFFERENTIABLE = (0,)


def _pair(values: Sequence[float]) -> tuple[float, float]:
    """Returns the vertical and horizontal scale; a single value applies to both."""
    return (values[0], values[-1])


def formula(input: Tensor, *, scale_factor: Sequence[float], align_corners: int) -> Tensor:
    down, across = _pair(scale_factor)
    sizes = [floor_scale(input.shape[2], down), floor_scale(input.shape[3], across)]
    return torch.ops.aten.upsample_bicubic2d.default(input, sizes, bool(align_corners), down, across)


def body(call: Call, *, scale_factor: Sequence[float], align_corners: int) -> str:
    down, across = _pair(scale_factor)
    return f"""
        scales = Constant <value = float[4] {{1, 1, {down!r}, {across!r}}}> ()
        output = Resize <mode = "cubic", cubic_coeff_a = -0.75,
            coordinate_transformation_mode = "{"align_corners" if align_corners else "half_pixel"}"> (input, , scales)
    """
