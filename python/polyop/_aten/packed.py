# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers whose number of steps is not constant, and torch.nn.utils.rnn.PackedSequence.

ONNX's recurrent nodes take padded sequences and their lengths. While PyTorch captures a program, a packed sequence has
the rows of the padded sequences, with those after their ends, and its `batch_sizes` is PackedLengths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_C = torch._C._VariableFunctions
# The order of the gates in PyTorch's weights that ONNX has.
_LSTM_GATES, _GRU_GATES = (0, 3, 1, 2), (1, 0, 2)


class PackedLengths:
    """Replaces `batch_sizes`, the number of sequences that each step has."""

    device = torch.device("cpu")

    def __init__(self, lengths: Tensor, steps: Any, batch: Any) -> None:
        self.lengths = lengths
        self.steps = steps
        self.batch = batch

    def __getitem__(self, step: int) -> Any:
        if step != 0:
            raise NotImplementedError("a packed sequence in an ONNX file: only the size of the first step is known")
        return self.batch

    def size(self, dim: int = 0) -> int:
        """Returns 0: pad_packed_sequence passes it on as the length, if the caller gives none."""
        return 0

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(
            f"{getattr(func, '__name__', func)} of a packed sequence has no ONNX form: pad it first, by "
            "torch.nn.utils.rnn.pad_packed_sequence"
        )


def _pack(input: Tensor, lengths: Tensor, batch_first: bool) -> Any:
    rows = input.transpose(0, 1) if batch_first else input
    steps, batch = rows.shape[0], rows.shape[1]
    return rows.flatten(0, 1), PackedLengths(lengths, steps, batch)


def _pad(data: Tensor, packed: PackedLengths, batch_first: bool, value: float, total_length: Any) -> Any:
    rows = data.unflatten(0, [packed.steps, packed.batch])
    after = torch.arange(packed.steps, device=data.device).unsqueeze(1) >= packed.lengths
    rows = rows.masked_fill(after.reshape([*after.shape] + [1] * (rows.dim() - 2)), value)
    if isinstance(total_length, int) and total_length == 0:  # as long as the longest sequence, which is the first one
        longest = packed.lengths[0].item()
        torch._check(longest >= 0)
        torch._check(longest <= packed.steps)
        rows = rows[:longest]
    elif isinstance(total_length, int) and isinstance(packed.steps, int) and total_length <= packed.steps:
        rows = rows[:total_length]
    else:
        missing = [0, 0] * (rows.dim() - 1) + [0, total_length - packed.steps]
        rows = functional.pad(rows, missing, value=value)
    return rows.transpose(0, 1) if batch_first else rows, packed.lengths


def _ordered(parameter: Tensor, gates: Sequence[int]) -> Tensor:
    parts = parameter.chunk(len(gates), 0)
    return torch.cat([parts[gate] for gate in gates])


def _has_node(layer: Sequence[Any]) -> bool:
    """Says whether ONNX has the layer: not one with proj_size."""
    state, weights, biases, layers, *_, bidirectional = layer
    states = [state] if isinstance(state, Tensor) else list(state)
    count = (4 if biases else 2) * layers * (2 if bidirectional else 1)
    return len(weights) == count and all(s.shape[-1] == weights[1].shape[1] for s in states)


def _recurrent(node: str, gates: Sequence[int], activation: str = "", **fixed: int) -> Callable[..., Any]:
    def write(
        rows: Tensor, lengths: Tensor | None, state: Any, weights: Sequence[Tensor], biases: bool, layers: int, _: float,
        __: bool, bidirectional: bool,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Computes the layers of sequences [steps, batch, features]."""
        dtype, (steps, batch) = rows.dtype, rows.shape[:2]
        states = [state] if isinstance(state, Tensor) else list(state)
        each, ways, hidden = 4 if biases else 2, 2 if bidirectional else 1, weights[1].shape[1]
        rows = rows.to(torch.float32)
        last: list[list[Tensor]] = [[] for _ in states]
        for layer in range(layers):
            own = [weights[(layer * ways + way) * each :][:each] for way in range(ways)]
            stacked = [torch.stack([_ordered(w[i], gates) for w in own]).to(torch.float32) for i in range(each)]
            bias = torch.cat(stacked[2:], 1) if biases else None
            first = [s[layer * ways : (layer + 1) * ways].to(torch.float32) for s in states]
            shape = [ways, batch, hidden]
            attributes: dict[str, Any] = {
                "hidden_size": hidden,
                "direction": "bidirectional" if bidirectional else "forward",
                **fixed,
            }
            if activation:
                attributes["activations"] = [activation] * ways
            rows, *ends = torch.onnx.ops.symbolic_multi_out(
                node,
                [rows, *stacked[:2], bias, lengths, *first],
                attributes,
                dtypes=[torch.float32] * (1 + len(states)),
                shapes=[[steps, *shape], *[shape] * len(states)],
                version=14,
            )
            rows = rows.transpose(1, 2).flatten(2)
            for ended, end in zip(last, ends, strict=True):
                ended.append(end)
        return rows.to(dtype), *(torch.cat(ended).to(dtype) for ended in last)

    def call(*args: Any, **given: Any) -> Any:
        if given or len(args) != 9:
            return NotImplemented
        if isinstance(args[1], PackedLengths):
            data, packed, *layer = args
            if not _has_node(layer):
                raise NotImplementedError("a packed sequence in an ONNX file: expected a layer without proj_size")
            rows = data.unflatten(0, [packed.steps, packed.batch])
            rows, *ends = write(rows, packed.lengths.to(torch.int32), *layer)
            return rows.flatten(0, 1), *ends
        data, *layer, batch_first = args
        rows = data.transpose(0, 1) if batch_first else data
        # PyTorch unrolls the layer to know its results' sizes, which makes the number of steps constant.
        if isinstance(rows.shape[0], int) or not _has_node(layer):
            return NotImplemented
        rows, *ends = write(rows, None, *layer)
        return rows.transpose(0, 1) if batch_first else rows, *ends

    return call


REPLACED: dict[Any, Callable[..., Any]] = {
    _C._pack_padded_sequence: _pack,
    _C._pad_packed_sequence: _pad,
    _C.lstm: _recurrent("LSTM", _LSTM_GATES),
    _C.gru: _recurrent("GRU", _GRU_GATES, linear_before_reset=1),
    _C.rnn_tanh: _recurrent("RNN", (0,), "Tanh"),
    _C.rnn_relu: _recurrent("RNN", (0,), "Relu"),
}
"""Functions of the capture, by the function of PyTorch that each replaces."""
