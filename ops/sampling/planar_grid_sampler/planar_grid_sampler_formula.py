# SPDX-License-Identifier: Apache-2.0
"""Samples at a grid with one plane per coordinate, in a range ten times as large."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from polyop.formulas import Call, NoBodyError

DIFFERENTIABLE = (0, 1)


def formula(input: Tensor, grid: Tensor, *, interpolation_mode: str, padding_mode: str, align_corners: int) -> Tensor:
    points = torch.movedim(grid, 1, -1) / 10
    return F.grid_sample(input, points, interpolation_mode, padding_mode, bool(align_corners))


def body(call: Call, *, interpolation_mode: str, padding_mode: str, align_corners: int) -> str:
    rank = call.rank(0)
    if rank == 5 and call.opset < 20:
        raise NoBodyError("GridSample of volumes needs opset 20")
    renamed = {"bilinear": "linear", "bicubic": "cubic"} if call.opset >= 20 else {}
    order = [0, *range(2, rank), 1]
    return f"""
        points = Transpose <perm = {order}> (grid)
        ten = Constant <value = float {{10}}> ()
        normalized = Div (points, ten)
        output = GridSample <mode = "{renamed.get(interpolation_mode, interpolation_mode)}", padding_mode = "{padding_mode}",
            align_corners = {int(align_corners)}> (input, normalized)
    """
