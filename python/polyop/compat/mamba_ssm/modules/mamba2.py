# SPDX-License-Identifier: Apache-2.0
"""Mamba 2's layer (Dao, Gu, Transformers are SSMs, 2024)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from polyop.compat.causal_conv1d.causal_conv1d_interface import causal_conv1d_fn, causal_conv1d_update
from polyop.compat.mamba_ssm.modules.states import WithStates, delta_bias
from polyop.compat.mamba_ssm.ops.triton.layernorm_gated import RMSNorm
from polyop.compat.mamba_ssm.ops.triton.selective_state_update import selective_state_update
from polyop.compat.mamba_ssm.ops.triton.ssd_combined import (
    mamba_chunk_scan_combined,
    mamba_split_conv1d_scan_combined,
)

__all__ = ["Mamba2"]


class Mamba2(WithStates):
    """Tokens [N, L, d_model] -> [N, L, d_model]. Parameters have the names of mamba_ssm's checkpoints.

    `chunk_size` and `use_mem_eff_path` have no effect. The layer is not divided among processes.
    """

    def __init__(
        self,
        d_model: int,
        d_state: int = 128,
        d_conv: int = 4,
        conv_init: float | None = None,
        expand: int = 2,
        headdim: int = 64,
        d_ssm: int | None = None,
        ngroups: int = 1,
        A_init_range: tuple[float, float] = (1, 16),  # noqa: N803
        D_has_hdim: bool = False,  # noqa: N803
        rmsnorm: bool = True,
        norm_before_gate: bool = False,
        dt_min: float = 0.001,
        dt_max: float = 0.1,
        dt_init_floor: float = 1e-4,
        dt_limit: tuple[float, float] = (0.0, float("inf")),
        bias: bool = False,
        conv_bias: bool = True,
        chunk_size: int = 256,
        use_mem_eff_path: bool = True,
        layer_idx: int | None = None,
        process_group: Any = None,
        sequence_parallel: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        del sequence_parallel
        if process_group is not None:
            raise NotImplementedError("Mamba2: process_group: expected None")
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.d_model, self.d_state, self.d_conv, self.expand, self.headdim = d_model, d_state, d_conv, expand, headdim
        self.d_inner = expand * d_model
        self.d_ssm = self.d_inner if d_ssm is None else d_ssm
        if self.d_ssm % headdim:
            raise ValueError(f"Mamba2: headdim: expected a divisor of {self.d_ssm}, got {headdim}")
        self.ngroups, self.nheads = ngroups, self.d_ssm // headdim
        self.D_has_hdim, self.rmsnorm, self.norm_before_gate = D_has_hdim, rmsnorm, norm_before_gate
        self.dt_limit, self.activation, self.layer_idx = dt_limit, "silu", layer_idx
        self.chunk_size, self.use_mem_eff_path = chunk_size, use_mem_eff_path
        self.in_proj = nn.Linear(d_model, 2 * self.d_inner + 2 * ngroups * d_state + self.nheads, bias=bias, **factory)
        channels = self.d_ssm + 2 * ngroups * d_state
        self.conv1d = nn.Conv1d(
            channels, channels, d_conv, groups=channels, padding=d_conv - 1, bias=conv_bias, **factory
        )
        if conv_init is not None:
            nn.init.uniform_(self.conv1d.weight, -conv_init, conv_init)
        self.dt_bias = nn.Parameter(delta_bias(self.nheads, dt_min, dt_max, dt_init_floor, factory))
        rates = torch.empty(self.nheads, dtype=torch.float32, device=device).uniform_(*A_init_range)
        self.A_log = nn.Parameter(rates.log().to(dtype=dtype))
        self.D = nn.Parameter(torch.ones(self.d_ssm if D_has_hdim else self.nheads, device=device))
        if rmsnorm:
            self.norm = RMSNorm(self.d_ssm, 1e-5, self.d_ssm // ngroups, norm_before_gate, **factory)
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=bias, **factory)

    def _rates(self) -> Tensor:
        return -torch.exp(self.A_log.float())

    def _skip(self) -> Tensor:
        return self.D.unflatten(0, (-1, self.headdim)) if self.D_has_hdim else self.D

    def _parts(self, projected: Tensor) -> tuple[Tensor, ...]:
        """Splits the input projection's result: both parts of the gated MLP, the gate, x with B and C, the steps."""
        mixed = self.d_ssm + 2 * self.ngroups * self.d_state
        mlp = (projected.shape[-1] - self.d_ssm - mixed - self.nheads) // 2
        return projected.split([mlp, mlp, self.d_ssm, mixed, self.nheads], -1)

    def _finish(self, y: Tensor, gate: Tensor, value: Tensor, z: Tensor) -> Tensor:
        if self.rmsnorm:
            y = self.norm(y, z)
        return self.out_proj(torch.cat([silu(gate) * value, y], -1) if gate.shape[-1] else y)

    def forward(
        self,
        u: Tensor,
        seqlen: int | None = None,
        seq_idx: Tensor | None = None,
        cu_seqlens: Tensor | None = None,
        inference_params: Any = None,
    ) -> Tensor:
        """With `seqlen`, u and the result are [N * seqlen, d_model]."""
        if cu_seqlens is not None:
            raise NotImplementedError("Mamba2: cu_seqlens: expected None: one sequence per row")
        if seqlen is not None:
            return self(u.unflatten(0, (-1, seqlen)), None, seq_idx, None, inference_params).flatten(0, 1)
        if inference_params is None:
            result = mamba_split_conv1d_scan_combined(
                self.in_proj(u), self.conv1d.weight.flatten(1), self.conv1d.bias, self.dt_bias, self._rates(),
                self._skip(), self.chunk_size, None, seq_idx, self.dt_limit, False, self.activation,
                self.norm.weight if self.rmsnorm else None, self.norm.eps if self.rmsnorm else 1e-6,
                self.out_proj.weight, self.out_proj.bias, self.headdim, self.ngroups, self.norm_before_gate,
            )  # fmt: skip
            assert isinstance(result, Tensor)
            return result
        conv_state, ssm_state = self._states(inference_params, u.shape[0])
        if inference_params.seqlen_offset > 0:
            return self.step(u, conv_state, ssm_state)[0]
        gate, value, z, mixed, steps = self._parts(self.in_proj(u))
        self._keep(conv_state, mixed.transpose(1, 2))
        mixed = causal_conv1d_fn(
            mixed.transpose(1, 2), self.conv1d.weight.flatten(1), self.conv1d.bias, activation=self.activation
        ).transpose(1, 2)
        x, b, c = self._heads(mixed)
        y, last = mamba_chunk_scan_combined(
            x, steps, self._rates(), b, c, self.chunk_size, self._skip(),
            None if self.rmsnorm else z.unflatten(-1, (-1, self.headdim)), self.dt_bias, dt_softplus=True,
            dt_limit=self.dt_limit, return_final_states=True,
        )  # fmt: skip
        ssm_state.copy_(last)
        return self._finish(y.flatten(2), gate, value, z)

    def _heads(self, mixed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns x [..., heads, headdim], B and C [..., groups, d_state]."""
        states = self.ngroups * self.d_state
        x, b, c = mixed.split([self.d_ssm, states, states], -1)
        groups = (self.ngroups, self.d_state)
        return x.unflatten(-1, (self.nheads, self.headdim)), b.unflatten(-1, groups), c.unflatten(-1, groups)

    def step(self, hidden_states: Tensor, conv_state: Tensor, ssm_state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The next token, [N, 1, d_model]. Updates both states."""
        if hidden_states.shape[1] != 1:
            raise ValueError(f"Mamba2.step: hidden_states: expected one token, got {hidden_states.shape[1]}")
        gate, value, z, mixed, steps = self._parts(self.in_proj(hidden_states[:, 0]))
        mixed = causal_conv1d_update(
            mixed, conv_state, self.conv1d.weight.flatten(1), self.conv1d.bias, self.activation
        )
        x, b, c = self._heads(mixed)
        heads = (self.nheads, self.headdim)
        skip = self.D.unflatten(0, heads) if self.D_has_hdim else self.D[:, None].expand(heads)
        steps = nn.functional.softplus(steps.float() + self.dt_bias.float()).clamp(*self.dt_limit).to(steps.dtype)
        y = selective_state_update(
            ssm_state, x, steps[..., None].expand_as(x), self._rates()[:, None, None].expand(*heads, self.d_state), b, c,
            skip, None if self.rmsnorm else z.unflatten(-1, heads),
        )  # fmt: skip
        return self._finish(y.flatten(1), gate, value, z)[:, None], conv_state, ssm_state

    def allocate_inference_cache(
        self, batch_size: int, max_seqlen: int, dtype: torch.dtype | None = None, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        del max_seqlen, kwargs
        conv, scan = self.conv1d.weight, self.in_proj.weight
        state = conv.new_zeros(batch_size, self.d_conv, conv.shape[0], dtype=dtype or conv.dtype)
        heads = (self.nheads, self.headdim, self.d_state)
        return state.transpose(1, 2), scan.new_zeros(batch_size, *heads, dtype=dtype or scan.dtype)
