# SPDX-License-Identifier: Apache-2.0
"""Bicubic resizing to sizes given by an input: ONNX's Resize; in PyTorch, two matrix products."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0,)


def formula(
    input: Tensor, sizes: Tensor, *, coordinate_transformation_mode: str, cubic_coeff_a: float, exclude_outside: int
) -> Tensor:
    rows, columns = (
        _weights(extent, size, coordinate_transformation_mode, cubic_coeff_a, bool(exclude_outside)).to(input)
        for extent, size in zip(input.shape[2:], sizes.tolist(), strict=True)
    )
    return rows @ input @ columns.T


def _weights(inputs: int, outputs: int, mode: str, a: float, exclude_outside: bool) -> Tensor:
    """Returns the weights [outputs, inputs] of the input pixels in each output pixel."""
    at = torch.arange(outputs, dtype=torch.float64)
    if mode == "align_corners":
        at = at * (inputs - 1) / max(outputs - 1, 1)
    elif mode == "asymmetric":
        at = at * inputs / outputs
    elif mode == "half_pixel" or outputs > 1:
        at = (at + 0.5) * inputs / outputs - 0.5
    pixels = at.floor()[:, None] + torch.arange(-1, 3)
    d = (at[:, None] - pixels).abs()
    near, far = ((a + 2) * d - (a + 3)) * d * d + 1, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    weights = torch.where(d <= 1, near, far)
    if exclude_outside:
        weights = weights * ((pixels >= 0) & (pixels < inputs))
        weights = weights / weights.sum(1, keepdim=True)
    return torch.zeros(outputs, inputs, dtype=torch.float64).scatter_add(1, pixels.clamp(0, inputs - 1).long(), weights)


def body(call: Call, *, coordinate_transformation_mode: str, cubic_coeff_a: float, exclude_outside: int) -> str:
    # Reshape is the identity; it states that there are four sizes, without which ONNX Runtime rejects Resize.
    return f"""
        whole = Shape (input)
        zero = Constant <value = int64[1] {{0}}> ()
        two = Constant <value = int64[1] {{2}}> ()
        kept = Slice (whole, zero, two)
        joined = Concat <axis = 0> (kept, sizes)
        four = Constant <value = int64[1] {{4}}> ()
        all_sizes = Reshape (joined, four)
        output = Resize <mode = "cubic", cubic_coeff_a: float = {cubic_coeff_a!r}, exclude_outside = {int(exclude_outside)},
            coordinate_transformation_mode = "{coordinate_transformation_mode}"> (input, , , all_sizes)
    """
