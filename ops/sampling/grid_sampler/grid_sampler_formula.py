# SPDX-License-Identifier: Apache-2.0
"""Sampling at the coordinates of a grid: PyTorch's grid_sample."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from polyop.formulas import Call, NoBodyError

DIFFERENTIABLE = (0, 1)


def formula(input: Tensor, grid: Tensor, *, interpolation_mode: str, padding_mode: str, align_corners: int) -> Tensor:
    return F.grid_sample(input, grid, interpolation_mode, padding_mode, bool(align_corners))


def body(call: Call, *, interpolation_mode: str, padding_mode: str, align_corners: int) -> str:
    """Returns the node that PyTorch's exporter writes, which supports images only."""
    if call.ranks[0] == 5 and call.opset < 20:
        raise NoBodyError("ONNX samples volumes from opset 20 on")
    renamed = {"bilinear": "linear", "bicubic": "cubic"} if call.opset >= 20 else {}
    return f"""
        output = GridSample <mode = "{renamed.get(interpolation_mode, interpolation_mode)}", padding_mode = "{padding_mode}",
            align_corners = {int(align_corners)}> (input, grid)
    """


def example(call: Call, **_: Any) -> list[Tensor]:
    if call.ranks[0] == 5:
        return [torch.rand(2, 3, 4, 5, 6), torch.rand(2, 2, 3, 4, 3)]
    return [torch.rand(2, 3, 4, 5), torch.rand(2, 2, 3, 2)]
