# SPDX-License-Identifier: Apache-2.0
"""A stable sort: ONNX's TopK of all elements, which puts the lower index first where elements are equal."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call


def formula(x: Tensor, *, descending: int) -> Tensor:
    return torch.argsort(x, dim=-1, descending=bool(descending), stable=True)


def body(call: Call, *, descending: int) -> str:
    del call
    return f"""
        count = Shape <start = -1> (x)
        sorted, order = TopK <axis = -1, largest = {descending}, sorted = 1> (x, count)
    """
