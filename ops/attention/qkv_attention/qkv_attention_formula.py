# SPDX-License-Identifier: Apache-2.0
"""softmax(q k^T / sqrt(E)) v."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.attention_formula import attend

DIFFERENTIABLE = (0, 1, 2)


def formula(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return attend(query, key, value, None)[0]


def example(call: Call) -> list[Tensor]:
    return [torch.rand(2, 5, 8), torch.rand(2, 6, 8), torch.rand(2, 6, 7)]
