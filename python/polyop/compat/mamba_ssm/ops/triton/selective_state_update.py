# SPDX-License-Identifier: Apache-2.0
"""One step of Mamba and Mamba 2, which updates the state."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop import functional

__all__ = ["selective_state_update", "selective_state_update_ref"]


def selective_state_update(
    state: Tensor,
    x: Tensor,
    dt: Tensor,
    A: Tensor,  # noqa: N803
    B: Tensor,  # noqa: N803
    C: Tensor,  # noqa: N803
    D: Tensor | None = None,  # noqa: N803
    z: Tensor | None = None,
    dt_bias: Tensor | None = None,
    dt_softplus: bool = False,
    state_batch_indices: Tensor | None = None,
) -> Tensor:
    """state [N, dim, S] or [N, heads, dim, S]; x, dt, z [N, dim] or [N, heads, dim]; A [dim, S] or [heads, dim, S];
    B and C [N, S] or [N, groups, S]; D, dt_bias [dim] or [heads, dim] -> the shape of x. Updates `state` in place."""
    weights = torch.float64 if x.dtype == torch.float64 else torch.float32
    states = A.shape[-1]
    kept = state if state_batch_indices is None else state[state_batch_indices.long()]
    batch = x.shape[0]
    dim = x[0].numel() if batch else A.numel() // max(states, 1)

    def column(t: Tensor | None) -> Tensor | None:
        return None if t is None else t.to(x.dtype).reshape(batch, dim, 1)

    def of_channels(t: Tensor | None) -> Tensor | None:
        return None if t is None else t.to(weights).reshape(dim)

    def of_groups(t: Tensor) -> Tensor:
        return (t if t.dim() == 3 else t[:, None]).to(x.dtype)[..., None]

    out, last = functional.selective_scan(
        x.reshape(batch, dim, 1), dt.to(x.dtype).reshape(batch, dim, 1), A.to(weights).reshape(dim, states),
        of_groups(B), of_groups(C), of_channels(D), column(z), of_channels(dt_bias),
        kept.to(weights).reshape(batch, dim, states), dt_softplus,
    )  # fmt: skip
    updated = last.reshape(kept.shape).to(state.dtype)
    if state_batch_indices is None:
        state.copy_(updated)
    else:
        state[state_batch_indices.long()] = updated
    return out.reshape(x.shape)


selective_state_update_ref = selective_state_update
