# SPDX-License-Identifier: Apache-2.0
"""Repeats base anchors over the cells of a grid."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call


def formula(base: Tensor, height: Tensor, width: Tensor, *, stride_h: int, stride_w: int) -> Tensor:
    rows, columns, anchors = height.shape[0], width.shape[0], base.shape[0]
    y = (torch.arange(rows, device=base.device) * stride_h).reshape(rows, 1).expand(rows, columns)
    x = (torch.arange(columns, device=base.device) * stride_w).reshape(1, columns).expand(rows, columns)
    corner = torch.stack([x, y, x, y], -1)[:, :, None]
    return (base + corner).reshape(rows * columns * anchors, 4).to(base.dtype)


def example(call: Call, **_: Any) -> list[Tensor]:
    return [torch.rand(3, 4), torch.rand(4), torch.rand(5)]
