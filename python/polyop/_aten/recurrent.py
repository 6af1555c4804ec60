# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers with dynamic sizes: ONNX's nodes have the hidden size as an attribute, so that it must be fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table

from polyop._aten.table import decomposes

aten = torch.ops.aten


def _fixed(state: Tensor, size: int) -> Tensor:
    """Returns the state with the last size that the weights require, if the exporter does not know it."""
    if isinstance(state.shape[-1], int):
        return state
    return state.index_select(2, torch.arange(size, device=state.device))  # a reshape keeps the unknown size


def _lstm(input: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], *how: Any) -> Any:
    if hx[0].shape[-1] != hx[1].shape[-1]:  # with proj_size, which ONNX's LSTM lacks: a step after the other
        return decomposition_table[aten.lstm.input](input, hx, params, *how)
    sizes = params[1].shape[1], params[1].shape[0] // 4
    fixed = [_fixed(state, size) for state, size in zip(hx, sizes, strict=True)]
    if all(a is b for a, b in zip(fixed, hx, strict=True)):
        return NotImplemented
    return aten.lstm.input(input, fixed, params, *how)


def _single_state(op: Any) -> Callable[..., Any]:
    def call(input: Tensor, hx: Tensor, params: Sequence[Tensor], *how: Any) -> Any:
        fixed = _fixed(hx, params[1].shape[1])
        return NotImplemented if fixed is hx else op(input, fixed, params, *how)

    return call


decomposes("aten::lstm.input", when="dynamic sizes; proj_size")(_lstm)
for _name in ("gru", "rnn_tanh", "rnn_relu"):
    decomposes(f"aten::{_name}.input", when="dynamic sizes")(_single_state(getattr(aten, _name).input))
