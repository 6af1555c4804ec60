# SPDX-License-Identifier: Apache-2.0
"""The chunked scan of Mamba 2 (Dao, Gu, Transformers are SSMs, 2024): all states of a head decay alike, so that the
steps of a chunk are matrix products."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear, pad, silu, softplus

from polyop import functional
from polyop.compat.mamba_ssm.ops.triton.layernorm_gated import rmsnorm_fn

__all__ = ["mamba_chunk_scan_combined", "mamba_split_conv1d_scan_combined"]

_STEPS = 64  # of a chunk


def mamba_chunk_scan_combined(
    x: Tensor,
    dt: Tensor,
    A: Tensor,  # noqa: N803
    B: Tensor,  # noqa: N803
    C: Tensor,  # noqa: N803
    chunk_size: int = _STEPS,
    D: Tensor | None = None,  # noqa: N803
    z: Tensor | None = None,
    dt_bias: Tensor | None = None,
    initial_states: Tensor | None = None,
    seq_idx: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    dt_softplus: bool = False,
    dt_limit: tuple[float, float] = (0.0, float("inf")),
    return_final_states: bool = False,
    return_varlen_states: bool = False,
    state_dtype: torch.dtype | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """x and z [N, L, heads, P], dt [N, L, heads], A [heads], B and C [N, L, groups, S], D [heads] or [heads, P],
    dt_bias [heads], initial_states [N, heads, P, S] -> the output [N, L, heads, P], and the last states if requested.

    `chunk_size` and `state_dtype` have no effect. In an export, it is a node SelectiveScan.
    """
    del state_dtype
    if seq_idx is not None or cu_seqlens is not None or return_varlen_states:
        raise NotImplementedError("mamba_chunk_scan_combined: seq_idx, cu_seqlens: expected None: one sequence per row")
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    steps = dt.to(wide) if dt_bias is None else dt.to(wide) + dt_bias.to(wide)
    steps = softplus(steps) if dt_softplus else steps
    if tuple(dt_limit) != (0.0, float("inf")) or not dt_softplus:
        steps = steps.clamp(*dt_limit)
    first = None if initial_states is None else initial_states.to(wide)
    scan = _node if torch.onnx.is_in_onnx_export() or torch.compiler.is_exporting() else _products
    y, last = scan(x.to(wide), steps, A.to(wide), B.to(wide), C.to(wide), first)
    if D is not None:
        y = y + (D if D.dim() == 2 else D[:, None]).to(wide) * x
    y = (y if z is None else y * silu(z.to(wide))).to(x.dtype)
    return (y, last) if return_final_states else y


def _node(x: Tensor, steps: Tensor, rates: Tensor, b: Tensor, c: Tensor, first: Tensor | None) -> tuple[Tensor, Tensor]:
    heads, width = x.shape[2:]
    states = b.shape[3]
    y, last = functional.selective_scan(
        x.flatten(2).transpose(1, 2).contiguous(),
        steps.transpose(1, 2).repeat_interleave(width, 1).contiguous(),
        rates[:, None, None].expand(heads, width, states).reshape(heads * width, states),
        b.permute(0, 2, 3, 1).contiguous(),
        c.permute(0, 2, 3, 1).contiguous(),
        initial_state=None if first is None else first.flatten(1, 2),
    )
    return y.transpose(1, 2).unflatten(2, (heads, width)), last.unflatten(1, (heads, width))


def _products(
    x: Tensor, steps: Tensor, rates: Tensor, b: Tensor, c: Tensor, first: Tensor | None
) -> tuple[Tensor, Tensor]:
    batch, length, heads, width = x.shape
    groups, states = b.shape[2:]
    size = min(_STEPS, max(length, 1))
    missing = -length % size
    if missing:  # steps of size 0 change nothing
        x, b, c = (pad(t, (0, 0, 0, 0, 0, missing)) for t in (x, b, c))
        steps = pad(steps, (0, 0, 0, missing))
    chunks = (length + missing) // size
    added = (x * steps[..., None]).unflatten(1, (chunks, size))  # [N, chunks, size, heads, P]
    exponent = (steps * rates).transpose(1, 2).unflatten(2, (chunks, size)).cumsum(3)  # [N, heads, chunks, size]
    b, c = (t.transpose(1, 2).unflatten(2, (chunks, size)) for t in (b, c))  # [N, groups, chunks, size, S]

    # Within a chunk: what each step adds decays until a later one.
    later = torch.ones(size, size, dtype=torch.bool, device=x.device).tril()
    decay = torch.where(later, exponent.unsqueeze(4) - exponent.unsqueeze(3), -torch.inf).exp()
    weights = (c @ b.mT).unsqueeze(2) * decay.unflatten(1, (groups, heads // groups))
    y = weights.flatten(1, 2) @ added.permute(0, 3, 1, 2, 4)  # [N, heads, chunks, size, P]

    # Between chunks: the states after each, and what is left of them. The heads of a group are columns of one product.
    def of_groups(t: Tensor) -> Tensor:
        """[N, chunks, size, heads, P] -> [N, groups, chunks, size, heads / groups * P]"""
        return t.flatten(3).unflatten(3, (groups, -1)).permute(0, 3, 1, 2, 4)

    def of_heads(t: Tensor) -> Tensor:
        """[N, groups, chunks, K, heads / groups * P] -> [N, heads, chunks, K, P]"""
        return t.unflatten(4, (heads // groups, width)).movedim(4, 2).flatten(1, 2)

    rest = (exponent[..., -1:] - exponent).exp().permute(0, 2, 3, 1)  # [N, chunks, size, heads]
    sums = of_heads(b.mT @ of_groups(added * rest[..., None]))  # [N, heads, chunks, S, P]
    state = x.new_zeros(batch, heads, states, width) if first is None else first.mT
    before = []
    for chunk, kept in enumerate(exponent[..., -1].exp()[..., None, None].unbind(2)):
        before.append(state)
        state = kept * state + sums[:, :, chunk]
    if before:
        starts = torch.stack(before, 2).unflatten(1, (groups, heads // groups)).movedim(2, 4).flatten(4)
        y = y + of_heads(c @ starts) * exponent.exp()[..., None]
    y = y.permute(0, 2, 3, 1, 4).flatten(1, 2)[:, :length]
    return y, state.mT.contiguous()


def mamba_split_conv1d_scan_combined(
    zxbcdt: Tensor,
    conv1d_weight: Tensor,
    conv1d_bias: Tensor | None,
    dt_bias: Tensor,
    A: Tensor,  # noqa: N803
    D: Tensor,  # noqa: N803
    chunk_size: int = _STEPS,
    initial_states: Tensor | None = None,
    seq_idx: Tensor | None = None,
    dt_limit: tuple[float, float] = (0.0, float("inf")),
    return_final_states: bool = False,
    activation: str | None = "silu",
    rmsnorm_weight: Tensor | None = None,
    rmsnorm_eps: float = 1e-6,
    outproj_weight: Tensor | None = None,
    outproj_bias: Tensor | None = None,
    headdim: int | None = None,
    ngroups: int = 1,
    norm_before_gate: bool = True,
    state_dtype: torch.dtype | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Mamba 2's layer from the input projection's result, zxbcdt [N, L, 2 * mlp + 2 * dim + 2 * ngroups * S + heads],
    to the output projection, if that is given: [N, L, width]."""
    width = D.shape[1] if D.dim() == 2 else headdim
    if width is None:
        raise ValueError("mamba_split_conv1d_scan_combined: headdim: expected a number, because D has one dimension")
    heads, dim = D.shape[0], D.shape[0] * width
    states = (conv1d_weight.shape[0] - dim) // (2 * ngroups)
    mlp = (zxbcdt.shape[-1] - 2 * dim - 2 * ngroups * states - heads) // 2
    gate, value, z, xbc, dt = zxbcdt.split([mlp, mlp, dim, dim + 2 * ngroups * states, heads], -1)
    from polyop.compat.causal_conv1d.causal_conv1d_interface import causal_conv1d_fn  # keeps imports flat

    xbc = causal_conv1d_fn(xbc.transpose(1, 2), conv1d_weight, conv1d_bias, seq_idx, activation=activation)
    x, b, c = xbc.transpose(1, 2).split([dim, ngroups * states, ngroups * states], -1)
    y, last = mamba_chunk_scan_combined(
        x.unflatten(2, (heads, width)), dt, A, b.unflatten(2, (ngroups, states)), c.unflatten(2, (ngroups, states)),
        chunk_size, D, z.unflatten(2, (heads, width)) if rmsnorm_weight is None else None, dt_bias, initial_states,
        seq_idx, dt_softplus=True, dt_limit=dt_limit, return_final_states=True, state_dtype=state_dtype,
    )  # fmt: skip
    y = y.flatten(2)
    if rmsnorm_weight is not None:
        y = rmsnorm_fn(y, rmsnorm_weight, None, z, rmsnorm_eps, dim // ngroups, norm_before_gate)
    if mlp > 0:
        y = torch.cat([silu(gate) * value, y], -1)
    if outproj_weight is not None:
        y = linear(y, outproj_weight, outproj_bias)
    return (y, last) if return_final_states else y
