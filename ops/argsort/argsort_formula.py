"""A stable sort: ONNX's TopK of all elements, which puts the lower index first where elements are equal."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call


def formula(x: Tensor) -> Tensor:
    return torch.argsort(x, stable=True)


def body(call: Call) -> str:
    del call
    return """
        count = Shape (x)
        ascending, order = TopK <axis = 0, largest = 0, sorted = 1> (x, count)
    """
