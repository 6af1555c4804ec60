# SPDX-License-Identifier: Apache-2.0
"""torch.scatter_reduce; in ONNX ScatterElements, which has neither the mean nor `include_self`."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call, NoBodyError

_OF_TORCH = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin", "mean": "mean"}


def formula(data: Tensor, indices: Tensor, updates: Tensor, *, axis: int, reduction: str, include_self: int) -> Tensor:
    index = torch.where(indices < 0, indices + data.shape[axis], indices).to(torch.int64)
    if indices.dim() == 1 and data.dim() > 1:
        shape = [1] * data.dim()
        shape[axis] = -1
        index = index.reshape(shape).expand(updates.shape)
    return data.scatter_reduce(axis, index, updates, _OF_TORCH[reduction], include_self=bool(include_self))


def body(call: Call, *, axis: int, reduction: str, include_self: int) -> str:
    if call.opset < 18:
        raise NoBodyError(f"expected opset 18 or later, which has all reductions, got {call.opset}")
    rank = call.rank(0)
    axis %= rank
    lines, index = [], "indices"
    if call.rank(1) == 1 and rank > 1:
        shape = ", ".join("-1" if d == axis else "1" for d in range(rank))
        lines += [
            f"line = Constant <value_ints = [{shape}]> ()",
            "column = Reshape (indices, line)",
            "sizes = Shape (updates)",
            "index = Expand (column, sizes)",
        ]
        index = "index"

    def scatter(data: str, what: str, how: str) -> str:
        return f'ScatterElements <axis = {axis}, reduction = "{how}"> ({data}, {index}, {what})'

    how, start = "add" if reduction == "mean" else reduction, "data"
    if include_self == 0 and how in ("max", "min"):  # any of an element's updates is a beginning
        lines.append(f"start = {scatter('data', 'updates', 'none')}")
        start = "start"
    elif include_self == 0 or reduction == "mean":
        lines += [
            "real_one = Constant <value_float = 1.0> ()", "one = CastLike (real_one, data)", "zero = Sub (one, one)",
            "number = Shape (updates)", "ones = Expand (one, number)", "all = Shape (data)",
            "zeros = Expand (zero, all)", f"hits = {scatter('zeros', 'ones', 'add')}",
        ]  # fmt: skip
        if include_self == 0:
            neutral = "one" if how == "mul" else "zero"
            lines += ["is_hit = Greater (hits, zero)", f"start = Where (is_hit, {neutral}, data)"]
            start = "start"
    result = scatter(start, "updates", how)
    if reduction == "mean":
        count = "Add (hits, one)" if include_self else "Max (hits, one)"
        lines += [f"sums = {result}", f"count = {count}", "output = Div (sums, count)"]  # by 1 without updates
    else:
        lines.append(f"output = {result}")
    return "\n".join(lines)
