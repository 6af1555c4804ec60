# SPDX-License-Identifier: Apache-2.0
"""The distinct integers: ONNX's Unique."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call


def formula(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    unique, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    return unique, inverse, counts, counts.new_tensor(counts.numel())


def body(call: Call) -> str:
    del call
    return """
        wide = Cast <to = 7> (x)
        distinct, first, inverse, counts = Unique <sorted = 1> (wide)
        unique = CastLike (distinct, x)
        num = Size (distinct)
    """
