# SPDX-License-Identifier: Apache-2.0
"""softmax(q k^T / sqrt(E) + mask) v, and the softmax itself."""

from __future__ import annotations

import torch
from torch import Tensor


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    products = (q @ k.transpose(1, 2)) / torch.as_tensor(q.shape[2]).to(q.dtype).sqrt()
    weights = torch.softmax(products if mask is None else products + mask, -1)
    return weights @ v, weights
