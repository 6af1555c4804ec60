# SPDX-License-Identifier: Apache-2.0
"""The selective scan, and the inner part of Mamba's layer."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear, silu, softplus

from polyop import functional
from polyop.compat.causal_conv1d.causal_conv1d_interface import causal_conv1d_fn

__all__ = ["mamba_inner_fn", "mamba_inner_ref", "scan", "selective_scan_fn", "selective_scan_ref"]


def _of_groups(coefficients: Tensor, u: Tensor, name: str) -> Tensor:
    """[N, S, L], [N, groups, S, L] or [dim, S] -> [N, groups, S, L], where [dim, S] gives each channel a group."""
    if coefficients.dim() == 2:
        batch, dim, length = u.shape
        return coefficients.to(u.dtype)[None, :, :, None].expand(batch, dim, coefficients.shape[1], length)
    if coefficients.dim() not in (3, 4):
        raise ValueError(f"selective_scan: {name}: expected 2 to 4 dimensions, got {list(coefficients.shape)}")
    return (coefficients if coefficients.dim() == 4 else coefficients[:, None]).to(u.dtype)


def _of_all_channels(coefficients: Tensor, dim: int) -> Tensor:
    return coefficients.repeat_interleave(dim // max(coefficients.shape[1], 1), 1)


def scan(
    u: Tensor,
    delta: Tensor,
    A: Tensor,  # noqa: N803
    B: Tensor,  # noqa: N803
    C: Tensor,  # noqa: N803
    D: Tensor | None = None,  # noqa: N803
    z: Tensor | None = None,
    delta_bias: Tensor | None = None,
    delta_softplus: bool = False,
) -> tuple[Tensor, Tensor]:
    """`selective_scan_fn` with the last state."""
    if A.is_complex():
        raise ValueError("selective_scan: A: expected real numbers; selective_scan_ref has complex ones")
    weights = torch.float64 if u.dtype == torch.float64 else torch.float32
    b, c = _of_groups(B, u, "B"), _of_groups(C, u, "C")
    if b.shape[1] != c.shape[1]:
        b, c = (_of_all_channels(t, u.shape[1]) for t in (b, c))
    return functional.selective_scan(
        u, delta.to(u.dtype), A.to(weights), b, c, None if D is None else D.to(weights),
        None if z is None else z.to(u.dtype), None if delta_bias is None else delta_bias.to(weights), None,
        delta_softplus,
    )  # fmt: skip


def selective_scan_fn(
    u: Tensor,
    delta: Tensor,
    A: Tensor,  # noqa: N803
    B: Tensor,  # noqa: N803
    C: Tensor,  # noqa: N803
    D: Tensor | None = None,  # noqa: N803
    z: Tensor | None = None,
    delta_bias: Tensor | None = None,
    delta_softplus: bool = False,
    return_last_state: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """u, delta and z [N, dim, L]; A [dim, S]; B and C [dim, S], [N, S, L] or [N, groups, S, L]; D and delta_bias [dim]
    -> [N, dim, L], and the last state [N, dim, S] if it is requested."""
    if A.is_complex():
        return selective_scan_ref(u, delta, A, B, C, D, z, delta_bias, delta_softplus, return_last_state)
    out, last = scan(u, delta, A, B, C, D, z, delta_bias, delta_softplus)
    return (out, last) if return_last_state else out


def selective_scan_ref(
    u: Tensor,
    delta: Tensor,
    A: Tensor,  # noqa: N803
    B: Tensor,  # noqa: N803
    C: Tensor,  # noqa: N803
    D: Tensor | None = None,  # noqa: N803
    z: Tensor | None = None,
    delta_bias: Tensor | None = None,
    delta_softplus: bool = False,
    return_last_state: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """`selective_scan_fn`, step by step in PyTorch's operators, also for a complex A. B and C then have pairs of
    numbers in the last dimension, or are complex if they have two dimensions."""
    x, steps = u.float(), delta.float()
    if delta_bias is not None:
        steps = steps + delta_bias.float()[:, None]
    if delta_softplus:
        steps = softplus(steps)

    def of_channels(t: Tensor) -> Tensor:
        """Returns the coefficients of each channel, [N or 1, dim, S, L or 1]."""
        if t.dim() == 2:
            return t[None, :, :, None]
        t = t.float()
        if A.is_complex():
            t = torch.view_as_complex(t.unflatten(-1, (-1, 2)).contiguous())
        return _of_all_channels(t if t.dim() == 4 else t[:, None], u.shape[1])

    decay = torch.exp(steps[:, :, None] * A[:, :, None])
    added = (steps * x)[:, :, None] * of_channels(B)
    readout = of_channels(C).expand(-1, -1, -1, u.shape[2])
    state = A.new_zeros(u.shape[0], *A.shape)
    sums = []
    for step in range(u.shape[2]):
        state = decay[..., step] * state + added[..., step]
        y = (state * readout[..., step]).sum(2)
        sums.append(2 * y.real if y.is_complex() else y)
    out = torch.stack(sums, 2) if sums else torch.zeros_like(x)
    if D is not None:
        out = out + x * D[:, None]
    if z is not None:
        out = out * silu(z.float())
    return (out.to(u.dtype), state) if return_last_state else out.to(u.dtype)


def _normalized(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """RMS normalization over the last dimension."""
    if weight is None:
        return x
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * weight).to(x.dtype)


def mamba_inner_fn(
    xz: Tensor,
    conv1d_weight: Tensor,
    conv1d_bias: Tensor | None,
    x_proj_weight: Tensor,
    delta_proj_weight: Tensor,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    A: Tensor,  # noqa: N803
    B: Tensor | None = None,  # noqa: N803
    C: Tensor | None = None,  # noqa: N803
    D: Tensor | None = None,  # noqa: N803
    delta_bias: Tensor | None = None,
    B_proj_bias: Tensor | None = None,  # noqa: N803
    C_proj_bias: Tensor | None = None,  # noqa: N803
    delta_softplus: bool = True,
    checkpoint_lvl: int = 1,
    b_rms_weight: Tensor | None = None,
    c_rms_weight: Tensor | None = None,
    dt_rms_weight: Tensor | None = None,
    b_c_dt_rms_eps: float = 1e-6,
) -> Tensor:
    """Mamba's layer from the input projection's result, xz [N, 2 * dim, L], to the output projection: [N, L, width]."""
    del checkpoint_lvl  # autograd keeps what the gradient needs
    x, z = xz.chunk(2, dim=1)
    x = causal_conv1d_fn(x, conv1d_weight.flatten(1), conv1d_bias, activation="silu")
    projected = linear(x.transpose(1, 2), x_proj_weight)
    rank, states = delta_proj_weight.shape[1], A.shape[1] * (2 if A.is_complex() else 1)
    steps, b, c = projected.split([rank, projected.shape[2] - rank - states, states], 2)
    delta = _normalized(linear(steps, delta_proj_weight), dt_rms_weight, b_c_dt_rms_eps).transpose(1, 2)

    def coefficients(t: Tensor, bias: Tensor | None, weight: Tensor | None) -> Tensor:
        t = _normalized(t if bias is None else t + bias.to(t.dtype), weight, b_c_dt_rms_eps)
        if A.is_complex():
            return t.unflatten(2, (-1, 2)).transpose(1, 2).flatten(2)
        return t.transpose(1, 2)

    B = coefficients(b[..., :states], B_proj_bias, b_rms_weight) if B is None else B  # noqa: N806
    C = coefficients(c, C_proj_bias, c_rms_weight) if C is None else C  # noqa: N806
    y = selective_scan_fn(x, delta, A, B, C, D, z, delta_bias, delta_softplus)
    return linear(y.transpose(1, 2), out_proj_weight, None if out_proj_bias is None else out_proj_bias.to(y.dtype))


mamba_inner_ref = mamba_inner_fn
