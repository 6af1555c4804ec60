# SPDX-License-Identifier: Apache-2.0
"""Special functions: the same series in torch, and in ONNX by tracing them."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop._aten import special
from polyop.formulas import Call


def formula(x: Tensor, *, function: str, variant: int) -> Tensor:
    return special.STANDARD[function, variant](x)


def example(call: Call, *, function: str, variant: int) -> tuple[Tensor]:
    return (torch.full([2] * call.rank(0), 0.5),)
