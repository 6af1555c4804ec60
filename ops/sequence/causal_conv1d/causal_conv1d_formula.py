# SPDX-License-Identifier: Apache-2.0
"""Causal convolution: the sum over each window's elements times the weights of its channel."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1, 2, 3)


def formula(
    x: Tensor, weight: Tensor, bias: Tensor | None, initial_state: Tensor | None, *, activation: str
) -> tuple[Tensor, Tensor]:
    batch, dim, length = x.shape
    width = weight.shape[1]
    state = x.new_zeros(batch, dim, width - 1) if initial_state is None else initial_state
    padded = torch.cat([state, x], 2)
    steps, taps = torch.arange(length, device=x.device), torch.arange(width, device=x.device)
    windows = padded[:, :, steps[:, None] + taps]
    y = (windows.to(torch.promote_types(x.dtype, weight.dtype)) * weight[:, None]).sum(3)
    if bias is not None:
        y = y + bias[:, None]
    if activation == "silu":
        y = y * y.sigmoid()
    return y.to(x.dtype), padded[:, :, length:]


def example(call: Call, *, activation: str) -> list[Tensor | None]:
    bias = torch.rand(3) if call.has("bias") else None
    return [torch.rand(2, 3, 5), torch.rand(3, 4), bias, torch.rand(2, 3, 3) if call.has("initial_state") else None]
