# SPDX-License-Identifier: Apache-2.0
"""Corner pooling: cummax; in ONNX, which has no running maximum, a Scan."""

from __future__ import annotations

from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.running_extreme_formula import scan

DIFFERENTIABLE = (0,)


def formula(input: Tensor, *, mode: str) -> Tensor:
    dim = 2 if mode in ("top", "bottom") else 3
    if mode in ("bottom", "right"):
        return input.cummax(dim).values
    return input.flip(dim).cummax(dim).values.flip(dim)


def body(call: Call, *, mode: str) -> str:
    axis = 2 if mode in ("top", "bottom") else 3
    return scan("output", "indices", rank=4, axis=axis, backwards=mode in ("top", "left"), greatest=True)
