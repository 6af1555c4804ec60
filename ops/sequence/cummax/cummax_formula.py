# SPDX-License-Identifier: Apache-2.0
"""The running maximum or minimum and its index; in ONNX, which has none, a Scan."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.running_extreme_formula import scan

DIFFERENTIABLE = (0,)


def formula(input: Tensor, *, dim: int, mode: str) -> tuple[Tensor, Tensor]:
    return (torch.cummax if mode == "max" else torch.cummin)(input, dim)


def body(call: Call, *, dim: int, mode: str) -> str:
    if call.rank(0) == 0:
        return """
            values = Identity (input)
            indices = Constant <value = int64 {0}> ()
        """
    return scan("values", "indices", rank=call.rank(0), axis=dim, backwards=False, greatest=mode == "max")
