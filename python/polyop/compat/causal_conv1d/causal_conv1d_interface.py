# SPDX-License-Identifier: Apache-2.0
"""The functions of causal_conv1d."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad, silu

from polyop import functional

__all__ = ["causal_conv1d_fn", "causal_conv1d_ref", "causal_conv1d_update", "causal_conv1d_update_ref"]


def _activation(name: str | None) -> str:
    if name not in (None, "silu", "swish"):
        raise NotImplementedError(f"activation: expected None, 'silu' or 'swish', got {name!r}")
    return "none" if name is None else "silu"


def _convolve(
    x: Tensor, weight: Tensor, bias: Tensor | None, state: Tensor | None, activation: str | None
) -> tuple[Tensor, Tensor]:
    """The operator has weights in the type of x, or in float32."""
    if weight.dtype != torch.float32 or x.dtype == torch.float64:
        weight = weight.to(x.dtype)
    return functional.causal_conv1d(
        x,
        weight,
        None if bias is None else bias.to(weight.dtype),
        None if state is None else state.to(x.dtype),
        _activation(activation),
    )


def _convolve_sequences(
    x: Tensor, weight: Tensor, bias: Tensor | None, seq_idx: Tensor, activation: str | None
) -> Tensor:
    """Several sequences in one: a window has only the elements of its own sequence. Negative indices mean padding,
    whose results are 0."""
    width, length, is_padding = weight.shape[1], x.shape[2], seq_idx[:, None] < 0
    x = x.masked_fill(is_padding, 0)  # so that gradients of NaN are 0, too
    result = x.new_zeros(()) if bias is None else bias[:, None]
    for k in range(width):
        shift = width - 1 - k
        before, own = (pad(t, (shift, 0))[..., :length] for t in (x, seq_idx + 1))
        result = result + weight[:, k, None] * torch.where((own == seq_idx + 1)[:, None], before, 0)
    result = result if _activation(activation) == "none" else silu(result)
    return result.masked_fill(is_padding, 0).to(x.dtype)


def causal_conv1d_fn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    seq_idx: Tensor | None = None,
    initial_states: Tensor | None = None,
    return_final_states: bool = False,
    final_states_out: Tensor | None = None,
    activation: str | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """x [N, dim, L], weight [dim, W], bias [dim], seq_idx [N, L], initial_states [N, dim, W - 1] -> [N, dim, L].

    Where seq_idx is negative, the result is 0.
    """
    if seq_idx is not None:
        if initial_states is not None or return_final_states:
            raise ValueError("causal_conv1d_fn: seq_idx: expected no states next to it")
        return _convolve_sequences(x, weight, bias, seq_idx, activation)
    out, state = _convolve(x, weight, bias, initial_states, activation)
    if not return_final_states:
        return out
    return out, state if final_states_out is None else final_states_out.copy_(state)


def causal_conv1d_update(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    cache_seqlens: Tensor | None = None,
    conv_state_indices: Tensor | None = None,
) -> Tensor:
    """x [N, dim] or [N, dim, L] -> the same shape. Appends x to conv_state [N, dim, at least W - 1], in place.

    With cache_seqlens [N], conv_state is a circular buffer, in which x begins at these positions. conv_state_indices
    [N] selects rows of conv_state; a negative one means padding: the result is 0, and no row is written.
    """
    steps = x.unsqueeze(2) if x.dim() == 2 else x
    rows = conv_state if conv_state_indices is None else conv_state[conv_state_indices.long().clamp(min=0)]
    length, size, before = steps.shape[2], rows.shape[2], weight.shape[1] - 1
    if size < before:
        raise ValueError(f"causal_conv1d_update: conv_state: expected at least {before} columns, got {size}")
    if cache_seqlens is None:
        window = rows[:, :, size - before :]
        updated = torch.cat([rows, steps.to(rows.dtype)], 2)[:, :, length:]
    else:
        first = cache_seqlens.long()[:, None]

        def columns(begin: int, end: int) -> Tensor:
            at = torch.remainder(first + torch.arange(begin, end, device=x.device), size)
            return at[:, None].expand(-1, rows.shape[1], -1)

        window = rows.gather(2, columns(-before, 0))
        updated = rows.scatter(2, columns(0, length), steps.to(rows.dtype))
    out, _ = _convolve(steps, weight, bias, window, activation)
    if conv_state_indices is None:
        conv_state.copy_(updated)
    else:
        owned = conv_state_indices >= 0
        out = torch.where(owned[:, None, None], out, 0)
        if len(owned) > 0:
            _write_rows(conv_state, conv_state_indices.long(), owned, torch.where(owned.any(), updated, rows))
    return out.squeeze(2) if x.dim() == 2 else out


def _write_rows(state: Tensor, indices: Tensor, owned: Tensor, rows: Tensor) -> None:
    """Writes rows to the state. Where `owned` is false, it repeats one for which it is true.

    The number of writes does not depend on values, so that it can be captured and exported. If `owned` is false for
    all, it writes rows[0] to row 0.
    """
    source = torch.where(owned, torch.arange(len(owned), device=owned.device), owned.long().argmax())
    state[indices[source].clamp(min=0)] = rows[source]


def causal_conv1d_ref(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    initial_states: Tensor | None = None,
    return_final_states: bool = False,
    final_states_out: Tensor | None = None,
    activation: str | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    return causal_conv1d_fn(x, weight, bias, None, initial_states, return_final_states, final_states_out, activation)


def causal_conv1d_update_ref(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    cache_seqlens: Tensor | None = None,
) -> Tensor:
    return causal_conv1d_update(x, conv_state, weight, bias, activation, cache_seqlens)
