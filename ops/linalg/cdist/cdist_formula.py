# SPDX-License-Identifier: Apache-2.0
"""Distances of all pairs of rows by torch's norms, whose gradients are 0 where a distance is."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1)


def formula(a: Tensor, b: Tensor, *, p: float, condensed: int) -> Tensor:
    differences = a.unsqueeze(-2) - b.unsqueeze(-3)
    pairs = torch.linalg.vector_norm(differences, p, -1)
    if p == 0:
        pairs = torch.where(differences.isnan().any(-1), torch.full_like(pairs, torch.nan), pairs)
    if not condensed:
        return pairs
    first, second = torch.triu_indices(a.shape[-2], a.shape[-2], 1, device=a.device)
    return pairs[..., first, second].unsqueeze(-2)


def body(call: Call, *, p: float, condensed: int) -> str:
    lines = [
        "row_axis = Constant <value = int64[1] {-2}> ()",
        "other_axis = Constant <value = int64[1] {-3}> ()",
        "last_axis = Constant <value = int64[1] {-1}> ()",
        "rows = Unsqueeze (a, row_axis)",
        "others = Unsqueeze (b, other_axis)",
        "differences = Sub (rows, others)",
        "sizes = Abs (differences)",
    ]
    result = "pairs" if condensed else "distances"
    if p == 0:
        lines += [
            "ones = Sign (sizes)",
            "unknown = IsNaN (sizes)",
            "counted = Where (unknown, sizes, ones)",
            f"{result} = ReduceSum <keepdims = 0> (counted, last_axis)",
        ]
    elif p == float("inf"):
        axes = "<keepdims = 0> (sizes, last_axis)" if call.opset >= 18 else "<axes = [-1], keepdims = 0> (sizes)"
        lines.append(f"{result} = ReduceMax {axes}")
    elif p == 1:
        lines.append(f"{result} = ReduceSum <keepdims = 0> (sizes, last_axis)")
    else:
        lines += [
            f"wide_power = Constant <value = double {{{p!r}}}> ()",
            f"wide_root = Constant <value = double {{{1 / p!r}}}> ()",
            "power = CastLike (wide_power, a)",
            "root = CastLike (wide_root, a)",
            "powers = Pow (sizes, power)",
            "sum = ReduceSum <keepdims = 0> (powers, last_axis)",
            f"{result} = Pow (sum, root)",
        ]
    if condensed:
        lines += [
            "extents = Shape (pairs)",
            "square = Slice (extents, row_axis, end)",
            "one = Constant <value = float {1}> ()",
            "all = Expand (one, square)",
            "first_later = Constant <value = int64 {1}> ()",
            "triangle = Trilu <upper = 1> (all, first_later)",
            "flat = Reshape (triangle, last_axis)",
            "later = Cast <to = 9> (flat)",
            "zero_position = Constant <value = int64[1] {0}> ()",
            "batch = Slice (extents, zero_position, row_axis)",
            "one_row = Constant <value = int64[1] {1}> ()",
            "flat_extents = Concat <axis = 0> (batch, one_row, last_axis)",
            "flat_pairs = Reshape (pairs, flat_extents)",
            "distances = Compress <axis = -1> (flat_pairs, later)",
        ]
        lines.insert(0, "end = Constant <value = int64[1] {9223372036854775807}> ()")
    return "\n".join(lines)
