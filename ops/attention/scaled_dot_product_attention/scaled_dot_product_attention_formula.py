# SPDX-License-Identifier: Apache-2.0
"""softmax(q k^T / sqrt(E) + mask) v, and the softmax."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.attention_formula import attend


def formula(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    return attend(q, k, v, mask)


def example(call: Call) -> list[Tensor | None]:
    mask = torch.rand(2, 5, 6) if call.has("mask") else None
    return [torch.rand(2, 5, 8), torch.rand(2, 6, 8), torch.rand(2, 6, 7), mask]
