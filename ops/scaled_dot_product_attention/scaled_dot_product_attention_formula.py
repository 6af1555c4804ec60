"""softmax(q k^T / sqrt(E) + mask) v, and the softmax itself."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call


def formula(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    products = (q @ k.transpose(1, 2)) / torch.as_tensor(q.shape[2]).to(q.dtype).sqrt()
    weights = torch.softmax(products if mask is None else products + mask, -1)
    return weights @ v, weights


def example(call: Call) -> list[Tensor | None]:
    mask = torch.rand(2, 5, 6) if call.has("mask") else None
    return [torch.rand(2, 5, 8), torch.rand(2, 6, 8), torch.rand(2, 6, 7), mask]
