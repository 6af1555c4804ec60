# SPDX-License-Identifier: Apache-2.0
"""The indices of some elements: torch.nonzero, and ONNX's NonZero."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call


def formula(x: Tensor, *, mode: str, dimensions: int) -> Tensor:
    flat = x.reshape(-1)
    if mode == "run_starts":
        first = torch.ones([1], dtype=torch.bool, device=x.device)
        flat = torch.cat([first, flat[1:] != flat[:-1]])[: x.numel()]
    last = list(x.shape[max(0, x.dim() - dimensions + 1) :])
    return torch.nonzero(flat.reshape([1] * (dimensions - 1 - len(last)) + [-1, *last]))


_RUN_STARTS = """
        minus_one = Constant <value = int64[1] {-1}> ()
        zero = Constant <value = int64[1] {0}> ()
        one = Constant <value = int64[1] {1}> ()
        end = Constant <value = int64[1] {9223372036854775807}> ()
        flat = Reshape (x, minus_one)
        later = Slice (flat, one, end)
        earlier = Slice (flat, zero, minus_one)
        equal = Equal (later, earlier)
        starts = Not (equal)
        first_one = Slice (flat, zero, one)
        same_type = Equal (first_one, first_one)
        differs = Not (same_type)
        first = Or (same_type, differs)
        found_flat = Concat <axis = 0> (first, starts)
        all_extents = Shape (x)
        found = Reshape <allowzero = 1> (found_flat, all_extents)
"""


def body(call: Call, *, mode: str, dimensions: int) -> str:
    rank = call.rank(0)
    lines = [_RUN_STARTS if mode == "run_starts" else "found = Cast <to = 9> (x)", "extents = Shape (found)"]
    joined = rank - dimensions + 1  # the first dimensions, which count as one; below 1: how many are added
    if joined > 0:
        lines += [
            "begin = Constant <value = int64[1] {0}> ()",
            f"last = Constant <value = int64[1] {{{joined}}}> ()",
            f"rank = Constant <value = int64[1] {{{rank}}}> ()",
            "first_extents = Slice (extents, begin, last)",
            "front = ReduceProd <keepdims = 1> (first_extents)",
            "kept = Slice (extents, last, rank)",
        ]
    else:
        ones = ", ".join("1" for _ in range(1 - joined))
        lines += [f"front = Constant <value = int64[{1 - joined}] {{{ones}}}> ()", "kept = Identity (extents)"]
    return "\n".join(
        [
            *lines,
            "shape = Concat <axis = 0> (front, kept)",
            "shaped = Reshape <allowzero = 1> (found, shape)",
            "columns = NonZero (shaped)",
            "indices = Transpose <perm = [1, 0]> (columns)",
        ]
    )
