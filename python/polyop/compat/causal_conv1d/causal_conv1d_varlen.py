# SPDX-License-Identifier: Apache-2.0
"""The states of sequences that follow each other in one tensor."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["causal_conv1d_varlen_states", "causal_conv1d_varlen_states_ref"]


def causal_conv1d_varlen_states(x: Tensor, cu_seqlens: Tensor, state_len: int) -> Tensor:
    """x [total, dim], cu_seqlens [batch + 1] -> [batch, dim, state_len]: the last elements of each sequence.

    Sequence i has the elements cu_seqlens[i] to cu_seqlens[i + 1] of x. Zeros come before those of a shorter one.
    """
    if x.shape[0] == 0:
        return x.new_zeros(len(cu_seqlens) - 1, state_len, x.shape[1]).transpose(1, 2)
    at = cu_seqlens[1:, None].long() + torch.arange(-state_len, 0, device=x.device)
    own = at >= cu_seqlens[:-1, None]
    return torch.where(own[..., None], x[at.clamp(min=0)], 0).transpose(1, 2)


causal_conv1d_varlen_states_ref = causal_conv1d_varlen_states
