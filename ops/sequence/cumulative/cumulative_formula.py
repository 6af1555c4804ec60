# SPDX-License-Identifier: Apache-2.0
"""torch.cumsum and torch.cumprod; in ONNX CumSum, and a Scan for products."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.padded_scan_formula import prepare

DIFFERENTIABLE = (0,)


def formula(input: Tensor, *, axis: int, mode: str, exclusive: int, reverse: int) -> Tensor:
    x = input.reshape(1) if input.dim() == 0 else input
    if reverse:
        x = x.flip(axis)
    if exclusive:
        shape = list(x.shape)
        shape[axis] = 1
        none = torch.full(shape, int(mode == "prod"), dtype=x.dtype, device=x.device)
        x = torch.cat([none, x], axis).narrow(axis, 0, x.shape[axis])
    result = (torch.cumprod if mode == "prod" else torch.cumsum)(x, axis, dtype=x.dtype)
    return (result.flip(axis) if reverse else result).reshape(input.shape)


def body(call: Call, *, axis: int, mode: str, exclusive: int, reverse: int) -> str:
    """In double precision, which represents all elements except integers beyond 2^53."""
    rank = call.rank(0)
    if rank == 0:
        return "one = Constant <value_float = 1.0> ()\noutput = " + (
            "Identity (input)" if not exclusive else "CastLike (one, input)" if mode == "prod" else "Sub (input, input)"
        )
    axis %= rank
    if mode == "sum":
        return f"""
            given = Cast <to = 11> (input)
            axis = Constant <value = int64 {{{axis}}}> ()
            sums = CumSum <exclusive = {exclusive}, reverse = {reverse}> (given, axis)
            output = CastLike (sums, input)
        """
    statements, shape = prepare(rank, axis)
    return f"""
        {statements}
        none = Constant <value = double {{1}}> ()
        first = Expand (none, slice)
        last, products = Scan <num_scan_inputs = 1, scan_input_axes = [{axis}], scan_input_directions = [{reverse}],
            scan_output_axes = [{axis}], scan_output_directions = [{reverse}],
            body = running (double{shape} before, double{shape} value)
                => (double{shape} next, double{shape} result) {{
                next = Mul (before, value)
                result = Identity ({"before" if exclusive else "next"})
            }}>
            (first, wide)
        inside = Slice (products, zeros, extents)
        output = CastLike (inside, input)
    """
