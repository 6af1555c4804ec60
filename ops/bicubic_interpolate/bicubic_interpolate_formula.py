"""Bicubic resizing by fixed scales: ONNX's own Resize."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from polyop.formulas import Call


def _pair(values: Sequence[float]) -> tuple[float, float]:
    """One value serves both axes."""
    return (values[0], values[-1])


def formula(input: Tensor, *, scale_factor: Sequence[float], align_corners: int) -> Tensor:
    return F.interpolate(input, scale_factor=_pair(scale_factor), mode="bicubic", align_corners=bool(align_corners))


def body(call: Call, *, scale_factor: Sequence[float], align_corners: int) -> str:
    down, across = _pair(scale_factor)
    return f"""
        scales = Constant <value = float[4] {{1, 1, {down!r}, {across!r}}}> ()
        output = Resize <mode = "cubic", cubic_coeff_a = -0.75,
            coordinate_transformation_mode = "{"align_corners" if align_corners else "half_pixel"}"> (input, , scales)
    """
