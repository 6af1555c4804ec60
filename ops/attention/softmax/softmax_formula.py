# SPDX-License-Identifier: Apache-2.0
"""ONNX's operators of the same names, of opset 13."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0,)


def formula(x: Tensor, *, axis: int, log: int) -> Tensor:
    return torch.log_softmax(x, axis) if log else torch.softmax(x, axis)


def body(call: Call, *, axis: int, log: int) -> str | None:
    if call.opset < 13:
        return None
    return f"y = {'LogSoftmax' if log else 'Softmax'} <axis = {axis}> (x)"


def example(call: Call, *, axis: int, log: int) -> tuple[Tensor]:
    del axis, log
    return (torch.randn([2] * call.rank(0)),)
