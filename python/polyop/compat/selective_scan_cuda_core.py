# SPDX-License-Identifier: Apache-2.0
"""`selective_scan_cuda_core`, `_oflex` and `_nrow`: the compiled part of VMamba's selective scan, also on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.compat.mamba_ssm.ops.selective_scan_interface import scan
from polyop.compat.selective_scan_cuda import states_of

__all__ = ["bwd", "fwd"]


def _scan(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None,  # noqa: N803
    delta_bias: Tensor | None,
    delta_softplus: bool, wide: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Returns the output, in f32 if it is wide, and the last state. Channels may share the sizes of steps."""
    shares = u.shape[1] // max(delta.shape[1], 1)
    if delta.shape[1] * shares != u.shape[1]:
        raise ValueError(f"selective_scan: delta: expected a divisor of {u.shape[1]} channels, got {delta.shape[1]}")
    if wide and u.dtype != torch.float64:
        u, delta, B, C = u.float(), delta.float(), B.float(), C.float()  # noqa: N806
    if shares != 1:
        delta = delta.repeat_interleave(shares, 1)
        delta_bias = None if delta_bias is None else delta_bias.repeat_interleave(shares)
    return scan(u, delta, A, B, C, D, None, delta_bias, delta_softplus)


def fwd(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None,  # noqa: N803
    delta_bias: Tensor | None,
    delta_softplus: bool, nrows: int = 1, out_float: bool = False,
) -> list[Tensor]:  # fmt: skip
    """u [N, dim, L], delta [N, dim or a divisor, L], A [dim, S], B and C [N, groups, S, L] -> the output, of f32 with
    `out_float`, and the states of `selective_scan_cuda.fwd`. `nrows` has no effect."""
    del nrows
    with torch.no_grad():
        out, last = _scan(u, delta, A, B, C, D, delta_bias, delta_softplus, out_float)
        return [out, states_of(last, u.shape[2])]


def bwd(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None,  # noqa: N803
    delta_bias: Tensor | None,
    dout: Tensor, x: Tensor | None, delta_softplus: bool, nrows: int = 1,
) -> list[Tensor | None]:  # fmt: skip
    """Returns the gradients of u, delta, A, B, C, D and delta_bias."""
    del x, nrows
    given = (u, delta, A, B, C, D, delta_bias)
    leaves = [t if t is None else t.detach().requires_grad_() for t in given]
    with torch.enable_grad():
        result, _ = _scan(*leaves, delta_softplus, dout.dtype != u.dtype)
    found = iter(torch.autograd.grad(result, [t for t in leaves if t is not None], dout))
    return [None if t is None else next(found) for t in leaves]
