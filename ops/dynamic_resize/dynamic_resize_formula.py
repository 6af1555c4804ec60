"""Bicubic resizing by scales that are an input: ONNX's own Resize."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from polyop.formulas import Call


def formula(input: Tensor, scales: Tensor) -> Tensor:
    return F.interpolate(input, scale_factor=scales[2:].tolist(), mode="bicubic", align_corners=False)


def body(call: Call) -> str:
    return """
        output = Resize <mode = "cubic", cubic_coeff_a = -0.75, coordinate_transformation_mode = "half_pixel">
            (input, , scales)
    """
