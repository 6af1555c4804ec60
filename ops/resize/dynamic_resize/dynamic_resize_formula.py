# SPDX-License-Identifier: Apache-2.0
"""Bicubic resizing by scales given by an input: ONNX's Resize."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call, floor_scale

DIFFERENTIABLE = (0,)


def formula(input: Tensor, scales: Tensor) -> Tensor:
    down, across = scales[2:].tolist()
    sizes = [floor_scale(input.shape[2], down), floor_scale(input.shape[3], across)]
    return torch.ops.aten.upsample_bicubic2d.default(input, sizes, False, down, across)


def body(call: Call) -> str:
    return """
        output = Resize <mode = "cubic", cubic_coeff_a = -0.75, coordinate_transformation_mode = "half_pixel">
            (input, , scales)
    """
