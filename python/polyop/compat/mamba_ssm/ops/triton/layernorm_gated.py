# SPDX-License-Identifier: Apache-2.0
"""Normalization with a gate, as in Mamba 2's layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

__all__ = ["LayerNorm", "RMSNorm", "layernorm_fn", "rmsnorm_fn"]


def layernorm_fn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    z: Tensor | None = None,
    eps: float = 1e-6,
    group_size: int | None = None,
    norm_before_gate: bool = True,
    is_rms_norm: bool = False,
) -> Tensor:
    """Normalizes x [..., K] by groups of `group_size` channels, and multiplies with silu(z) before or after it."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    y = x.to(wide)
    gate = None if z is None else silu(z.to(wide))
    if gate is not None and not norm_before_gate:
        y = y * gate
    groups = y.unflatten(-1, (-1, group_size or y.shape[-1]))
    if not is_rms_norm:
        groups = groups - groups.mean(-1, keepdim=True)
    y = (groups * torch.rsqrt(groups.square().mean(-1, keepdim=True) + eps)).flatten(-2) * weight.to(wide)
    if bias is not None:
        y = y + bias.to(wide)
    if gate is not None and norm_before_gate:
        y = y * gate
    return y.to(x.dtype)


def rmsnorm_fn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    z: Tensor | None = None,
    eps: float = 1e-6,
    group_size: int | None = None,
    norm_before_gate: bool = True,
) -> Tensor:
    """`layernorm_fn` by the root of the mean square."""
    return layernorm_fn(x, weight, bias, z, eps, group_size, norm_before_gate, True)


class _Norm(nn.Module):
    is_rms_norm = False

    def __init__(
        self,
        hidden_size: int,
        eps: float = 1e-5,
        group_size: int | None = None,
        norm_before_gate: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.eps, self.group_size, self.norm_before_gate = eps, group_size, norm_before_gate
        self.weight = nn.Parameter(torch.ones(hidden_size, device=device, dtype=dtype))
        self.bias = None if self.is_rms_norm else nn.Parameter(torch.zeros(hidden_size, device=device, dtype=dtype))

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        return layernorm_fn(
            x, self.weight, self.bias, z, self.eps, self.group_size, self.norm_before_gate, self.is_rms_norm
        )


class LayerNorm(_Norm):
    """Layer normalization."""


class RMSNorm(_Norm):
    """Normalization by the root of the mean square."""

    is_rms_norm = True
