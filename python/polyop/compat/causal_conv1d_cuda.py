# SPDX-License-Identifier: Apache-2.0
"""The compiled part of causal_conv1d: of version 1.6, whose functions write to given tensors, and of those before it,
whose functions return them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop.compat.causal_conv1d.causal_conv1d_interface import causal_conv1d_fn
from polyop.compat.causal_conv1d.causal_conv1d_interface import causal_conv1d_update as update

__all__ = ["causal_conv1d_bwd", "causal_conv1d_fwd", "causal_conv1d_update"]


def _split(function: str, arguments: tuple[Any, ...], count: int, at: int, written: int) -> tuple[list[Any], list[Any]]:
    """Returns `count` arguments of older versions, and those that newer ones have in addition, from index `at` on."""
    if len(arguments) == count:
        return list(arguments), [None] * written
    if len(arguments) != count + written:
        raise TypeError(f"{function}: expected {count} or {count + written} arguments, got {len(arguments)}")
    return [*arguments[:at], *arguments[at + written :]], list(arguments[at : at + written])


def causal_conv1d_fwd(*arguments: Any) -> Tensor:
    """x, weight, bias, seq_idx, initial_states, [out,] final_states_out, silu_activation"""
    (x, weight, bias, seq_idx, states, final, silu), (out,) = _split("causal_conv1d_fwd", arguments, 7, 5, 1)
    with torch.no_grad():
        activation = "silu" if silu else None
        result = causal_conv1d_fn(x, weight, bias, seq_idx, states, final is not None, final, activation)
        result = result if isinstance(result, Tensor) else result[0]
        return result if out is None else out.copy_(result)


def causal_conv1d_bwd(*arguments: Any) -> tuple[Tensor | None, ...]:
    """x, weight, bias, dout, seq_idx, initial_states, dfinal_states, dx, then dweight, dbias, dinitial_states, silu, or
    return_dinitial_states, silu."""
    if len(arguments) not in (10, 12):
        raise TypeError(f"causal_conv1d_bwd: expected 10 or 12 arguments, got {len(arguments)}")
    x, weight, bias, dout, seq_idx, states, of_final, dx = arguments[:8]
    to = (dx, *arguments[8:11]) if len(arguments) == 12 else (dx, None, None, None)
    activation = "silu" if arguments[-1] else None
    of_states = to[3] is not None if len(arguments) == 12 else bool(arguments[8])
    leaves = [t if t is None else t.detach().requires_grad_() for t in (x, weight, bias, states)]
    if not of_states and leaves[3] is not None:
        leaves[3] = leaves[3].detach()
    with torch.enable_grad():
        outputs = causal_conv1d_fn(
            leaves[0], leaves[1], leaves[2], seq_idx, leaves[3], of_final is not None, None, activation
        )
    outputs, grads = ((outputs,), (dout,)) if isinstance(outputs, Tensor) else (outputs, (dout, of_final))
    requested = [leaf for leaf in leaves if leaf is not None and leaf.requires_grad]
    found = iter(torch.autograd.grad(outputs, requested, grads))
    results = [None if leaf is None or not leaf.requires_grad else next(found) for leaf in leaves]
    return tuple(t if r is None else r if t is None else t.copy_(r) for r, t in zip(results, to, strict=True))


def causal_conv1d_update(*arguments: Any) -> Tensor:
    """x, conv_state, weight, bias, [out,] silu_activation, cache_seqlens, conv_state_indices"""
    (x, state, weight, bias, silu, lengths, indices), (out,) = _split("causal_conv1d_update", arguments, 7, 4, 1)
    with torch.no_grad():
        result = update(x, state, weight, bias, "silu" if silu else None, lengths, indices)
        return result if out is None else out.copy_(result)
