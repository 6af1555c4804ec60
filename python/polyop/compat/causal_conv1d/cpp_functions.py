# SPDX-License-Identifier: Apache-2.0
"""The functions of causal_conv1d that call its compiled part."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.compat import causal_conv1d_cuda as compiled

__all__ = ["causal_conv1d_bwd_function", "causal_conv1d_fwd_function", "causal_conv1d_update_function"]


def causal_conv1d_fwd_function(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    seq_idx: Tensor | None,
    initial_states: Tensor | None,
    final_states_out: Tensor | None,
    silu_activation: bool,
) -> Tensor:
    out = torch.empty_like(x)
    compiled.causal_conv1d_fwd(x, weight, bias, seq_idx, initial_states, out, final_states_out, silu_activation)
    return out


def causal_conv1d_bwd_function(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    dout: Tensor,
    seq_idx: Tensor | None,
    initial_states: Tensor | None,
    dfinal_states: Tensor | None,
    dx: Tensor | None,
    return_dinitial_states: bool,
    silu_activation: bool,
) -> tuple[Tensor | None, ...]:
    return compiled.causal_conv1d_bwd(
        x, weight, bias, dout, seq_idx, initial_states, dfinal_states, dx, return_dinitial_states, silu_activation
    )


def causal_conv1d_update_function(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    silu_activation: bool,
    cache_seqlens: Tensor | None,
    conv_state_indices: Tensor | None,
) -> Tensor:
    out = torch.empty_like(x)
    compiled.causal_conv1d_update(x, conv_state, weight, bias, out, silu_activation, cache_seqlens, conv_state_indices)
    return out
