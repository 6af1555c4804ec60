# SPDX-License-Identifier: Apache-2.0
"""The index of each repeated row: torch.repeat_interleave of a vector."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call


def formula(repeats: Tensor, total: Tensor) -> Tensor:
    return torch.repeat_interleave(repeats, output_size=total.item()).to(torch.int64)


def body(call: Call) -> str:
    # The running sum of marks at the end of each index.
    return """
        axis = Constant <value = int64 {0}> ()
        zero = Constant <value = int64[1] {0}> ()
        one = Constant <value = int64[1] {1}> ()
        minus_one = Constant <value = int64[1] {-1}> ()
        counts = Cast <to = 7> (repeats)
        ends = CumSum (counts, axis)
        number = Shape (counts)
        ones = ConstantOfShape <value = int64[1] {1}> (number)
        vector = Reshape (total, minus_one)
        length = Add (vector, one)
        empty = ConstantOfShape <value = int64[1] {0}> (length)
        marks = ScatterElements <axis = 0, reduction = "add"> (empty, ends, ones)
        kept = Slice (marks, zero, minus_one)
        indices = CumSum (kept, axis)
    """
