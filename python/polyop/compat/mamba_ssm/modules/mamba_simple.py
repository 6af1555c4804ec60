# SPDX-License-Identifier: Apache-2.0
"""Mamba's layer (Gu, Dao, Mamba: Linear-Time Sequence Modeling with Selective State Spaces, 2023)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from polyop.compat.causal_conv1d.causal_conv1d_interface import causal_conv1d_fn, causal_conv1d_update
from polyop.compat.mamba_ssm.modules.states import WithStates, delta_bias
from polyop.compat.mamba_ssm.ops.selective_scan_interface import mamba_inner_fn, selective_scan_fn
from polyop.compat.mamba_ssm.ops.triton.selective_state_update import selective_state_update

__all__ = ["Mamba"]


class Mamba(WithStates):
    """Tokens [N, L, d_model] -> [N, L, d_model]. Parameters have the names of mamba_ssm's checkpoints.

    `use_fast_path` has no effect.
    """

    def __init__(
        self,
        d_model: int,
        d_state: int = 16,
        d_conv: int = 4,
        expand: int = 2,
        dt_rank: int | str = "auto",
        dt_min: float = 0.001,
        dt_max: float = 0.1,
        dt_init: str = "random",
        dt_scale: float = 1.0,
        dt_init_floor: float = 1e-4,
        conv_bias: bool = True,
        bias: bool = False,
        use_fast_path: bool = True,
        layer_idx: int | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if dt_init not in ("random", "constant"):
            raise ValueError(f"Mamba: dt_init: expected 'random' or 'constant', got '{dt_init}'")
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.d_model, self.d_state, self.d_conv, self.expand = d_model, d_state, d_conv, expand
        self.d_inner = int(expand * d_model)
        self.dt_rank = math.ceil(d_model / 16) if isinstance(dt_rank, str) else dt_rank
        self.use_fast_path, self.layer_idx, self.activation = use_fast_path, layer_idx, "silu"
        inner = self.d_inner
        self.in_proj = nn.Linear(d_model, 2 * inner, bias=bias, **factory)
        self.conv1d = nn.Conv1d(inner, inner, d_conv, groups=inner, padding=d_conv - 1, bias=conv_bias, **factory)
        self.x_proj = nn.Linear(inner, self.dt_rank + 2 * d_state, bias=False, **factory)
        self.dt_proj = nn.Linear(self.dt_rank, inner, **factory)
        size = dt_scale * self.dt_rank**-0.5
        nn.init.uniform_(self.dt_proj.weight, -size if dt_init == "random" else size, size)
        with torch.no_grad():
            self.dt_proj.bias.copy_(delta_bias(inner, dt_min, dt_max, dt_init_floor, factory))
        rates = torch.arange(1, d_state + 1, dtype=torch.float32, device=device)
        self.A_log = nn.Parameter(rates.log().repeat(inner, 1))
        self.D = nn.Parameter(torch.ones(inner, device=device))
        self.out_proj = nn.Linear(inner, d_model, bias=bias, **factory)

    def forward(self, hidden_states: Tensor, inference_params: Any = None) -> Tensor:
        if inference_params is not None:
            conv_state, ssm_state = self._states(inference_params, hidden_states.shape[0])
            if inference_params.seqlen_offset > 0:
                return self.step(hidden_states, conv_state, ssm_state)[0]
        xz = self.in_proj(hidden_states).transpose(1, 2)
        rates = -torch.exp(self.A_log.float())
        if inference_params is None:
            result = mamba_inner_fn(
                xz, self.conv1d.weight, self.conv1d.bias, self.x_proj.weight, self.dt_proj.weight,
                self.out_proj.weight, self.out_proj.bias, rates, None, None, self.D.float(),
                delta_bias=self.dt_proj.bias.float(), delta_softplus=True,
            )  # fmt: skip
            return result
        x, z = xz.chunk(2, 1)
        self._keep(conv_state, x)
        x = causal_conv1d_fn(x, self.conv1d.weight.flatten(1), self.conv1d.bias, activation=self.activation)
        delta, b, c = self._projections(x.transpose(1, 2))
        y, last = selective_scan_fn(
            x, delta.transpose(1, 2), rates, b.transpose(1, 2), c.transpose(1, 2), self.D.float(), z,
            self.dt_proj.bias.float(), delta_softplus=True, return_last_state=True,
        )  # fmt: skip
        ssm_state.copy_(last)
        return self.out_proj(y.transpose(1, 2))

    def _projections(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the sizes of the steps before their bias, B and C."""
        steps, b, c = self.x_proj(x).split([self.dt_rank, self.d_state, self.d_state], -1)
        return nn.functional.linear(steps, self.dt_proj.weight), b, c

    def step(self, hidden_states: Tensor, conv_state: Tensor, ssm_state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The next token, [N, 1, d_model]. Updates both states."""
        if hidden_states.shape[1] != 1:
            raise ValueError(f"Mamba.step: hidden_states: expected one token, got {hidden_states.shape[1]}")
        x, z = self.in_proj(hidden_states[:, 0]).chunk(2, -1)
        x = causal_conv1d_update(x, conv_state, self.conv1d.weight.flatten(1), self.conv1d.bias, self.activation)
        delta, b, c = self._projections(x)
        y = selective_state_update(
            ssm_state, x, delta, -torch.exp(self.A_log.float()), b, c, self.D, z, self.dt_proj.bias, True
        )
        return self.out_proj(y)[:, None], conv_state, ssm_state

    def allocate_inference_cache(
        self, batch_size: int, max_seqlen: int, dtype: torch.dtype | None = None, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        del max_seqlen, kwargs
        conv, scan = self.conv1d.weight, self.dt_proj.weight
        return (
            conv.new_zeros(batch_size, self.d_inner, self.d_conv, dtype=dtype or conv.dtype),
            scan.new_zeros(batch_size, self.d_inner, self.d_state, dtype=dtype or scan.dtype),
        )
