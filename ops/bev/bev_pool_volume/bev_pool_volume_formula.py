# SPDX-License-Identifier: Apache-2.0
"""Sums products of depths and features into the cells of a bird's-eye view of several layers."""

from __future__ import annotations

from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.bev_sums_formula import pooled, pooled_body

DIFFERENTIABLE = (0, 1)


def formula(*tensors: Tensor, out_height: int, out_width: int, output_z: int) -> Tensor:
    return pooled(*tensors, (output_z, out_height, out_width))


def body(call: Call, *, out_height: int, out_width: int, output_z: int) -> str:
    return pooled_body(call, (output_z, out_height, out_width))
