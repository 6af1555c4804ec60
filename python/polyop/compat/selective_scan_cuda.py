# SPDX-License-Identifier: Apache-2.0
"""The compiled part of mamba_ssm's selective scan, also on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import silu

from polyop.compat.mamba_ssm.ops.selective_scan_interface import scan

__all__ = ["bwd", "fwd", "states_of"]

_STEPS = 2048  # between the states that `fwd` returns


def states_of(last: Tensor, length: int) -> Tensor:
    """Returns the states between the parts of a sequence, [N, dim, parts, 2 * S]. They have only the last state
    [N, dim, S], at [:, :, -1, 1::2], as its callers read it."""
    states = last.new_zeros(*last.shape[:2], max(1, -(-length // _STEPS)), 2 * last.shape[2])
    states[:, :, -1, 1::2] = last
    return states


def fwd(
    u: Tensor,
    delta: Tensor,
    A: Tensor,  # noqa: N803
    B: Tensor,  # noqa: N803
    C: Tensor,  # noqa: N803
    D: Tensor | None,  # noqa: N803
    z: Tensor | None,
    delta_bias: Tensor | None,
    delta_softplus: bool,
) -> list[Tensor]:
    """Returns the output without the gate, `states_of` the sequence, and the output if there is a gate."""
    with torch.no_grad():
        out, last = scan(u, delta, A, B, C, D, None, delta_bias, delta_softplus)
        states = states_of(last, u.shape[2])
        return [out, states] if z is None else [out, states, out * silu(z)]


def bwd(
    u: Tensor,
    delta: Tensor,
    A: Tensor,  # noqa: N803
    B: Tensor,  # noqa: N803
    C: Tensor,  # noqa: N803
    D: Tensor | None,  # noqa: N803
    z: Tensor | None,
    delta_bias: Tensor | None,
    dout: Tensor,
    x: Tensor | None,
    out: Tensor | None,
    dz: Tensor | None,
    delta_softplus: bool,
    recompute_out_z: bool,
) -> list[Tensor | None]:
    """Returns the gradients of u, delta, A, B, C, D, delta_bias and z, then the output if it is requested."""
    del x, out
    given = (u, delta, A, B, C, D, z, delta_bias)
    leaves = [t if t is None else t.detach().requires_grad_() for t in given]
    with torch.enable_grad():
        result, _ = scan(*leaves, delta_softplus)
    found = iter(torch.autograd.grad(result, [t for t in leaves if t is not None], dout))
    of_u, of_delta, of_a, of_b, of_c, of_d, of_z, of_bias = (None if t is None else next(found) for t in leaves)
    gradients = [of_u, of_delta, of_a, of_b, of_c, of_d, of_bias]
    if of_z is not None:
        gradients.append(of_z if dz is None else dz.copy_(of_z))
    return [*gradients, result.detach()] if recompute_out_z else gradients
