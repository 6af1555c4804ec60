# SPDX-License-Identifier: Apache-2.0
"""Normalization with a residual, as between the layers of Mamba's models."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from polyop.compat.mamba_ssm.ops.triton.layernorm_gated import layernorm_fn

__all__ = ["RMSNorm", "layer_norm_fn", "rms_norm_fn"]


def layer_norm_fn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    residual: Tensor | None = None,
    x1: Tensor | None = None,
    weight1: Tensor | None = None,
    bias1: Tensor | None = None,
    eps: float = 1e-6,
    dropout_p: float = 0.0,
    rowscale: Tensor | None = None,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
    is_rms_norm: bool = False,
    return_dropout_mask: bool = False,
) -> Tensor | tuple[Tensor, ...]:
    """Normalizes the sum of x, x1 and the residual -> the result, that by weight1 if it is given, and with `prenorm`
    the sum. `rowscale` multiplies rows of x before the dropout."""
    if return_dropout_mask:
        raise NotImplementedError("layer_norm_fn: return_dropout_mask: expected False")
    kind = x.dtype
    total = x if rowscale is None else x * rowscale[..., None]
    total = dropout(total, dropout_p) if dropout_p > 0 else total
    if x1 is not None:
        total = total + (dropout(x1, dropout_p) if dropout_p > 0 else x1)
    if residual is not None:
        total = total.to(torch.promote_types(kind, residual.dtype)) + residual
        total = total.to(residual.dtype)
    elif residual_in_fp32:
        total = total.float()
    results = [layernorm_fn(total, weight, bias, eps=eps, is_rms_norm=is_rms_norm).to(kind)]
    if weight1 is not None:
        results.append(layernorm_fn(total, weight1, bias1, eps=eps, is_rms_norm=is_rms_norm).to(kind))
    if prenorm:
        results.append(total)
    return results[0] if len(results) == 1 else tuple(results)


def rms_norm_fn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    residual: Tensor | None = None,
    x1: Tensor | None = None,
    weight1: Tensor | None = None,
    bias1: Tensor | None = None,
    eps: float = 1e-6,
    dropout_p: float = 0.0,
    rowscale: Tensor | None = None,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
    return_dropout_mask: bool = False,
) -> Tensor | tuple[Tensor, ...]:
    """`layer_norm_fn` by the root of the mean square."""
    return layer_norm_fn(
        x, weight, bias, residual, x1, weight1, bias1, eps, dropout_p, rowscale, prenorm, residual_in_fp32, True,
        return_dropout_mask,
    )  # fmt: skip


class RMSNorm(nn.Module):
    """Normalization by the root of the mean square, with a residual."""

    def __init__(
        self,
        hidden_size: int,
        eps: float = 1e-5,
        dropout_p: float = 0.0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.eps = eps
        self.drop = nn.Dropout(dropout_p) if dropout_p > 0 else None
        self.weight = nn.Parameter(torch.ones(hidden_size, device=device, dtype=dtype))
        self.bias = None

    def forward(
        self, x: Tensor, residual: Tensor | None = None, prenorm: bool = False, residual_in_fp32: bool = False
    ) -> Tensor | tuple[Tensor, ...]:
        p = self.drop.p if self.drop is not None and self.training else 0.0
        return rms_norm_fn(
            x, self.weight, self.bias, residual, eps=self.eps, dropout_p=p, prenorm=prenorm,
            residual_in_fp32=residual_in_fp32,
        )  # fmt: skip
