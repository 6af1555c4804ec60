"""Rows put and summed into the cells of a canvas, in torch and in ONNX's text: what formulas of operators share.

Of several claims to one cell the last wins. A row of no cell goes to one more behind the canvas, which is cut off.
"""

from __future__ import annotations

import torch
from torch import Tensor


def last_claims(cell: Tensor, cells: int) -> Tensor:
    """The cells [K] of claims, but `cells` for all of a cell except the last."""
    number = torch.arange(len(cell), device=cell.device)
    owner = number.new_full((cells + 1,), -1).scatter_reduce(0, cell, number, "amax")
    return torch.where(owner[cell] == number, cell, cells)


def add_rows(rows: Tensor, cell: Tensor, cells: int) -> Tensor:
    """rows [R, C] summed into their cells -> [cells, C]."""
    wide = rows.to(torch.promote_types(rows.dtype, torch.float32))
    return wide.new_zeros(cells + 1, rows.shape[1]).index_add(0, cell, wide)[:cells].to(rows.dtype)


def interval_rows(starts: Tensor, lengths: Tensor, cell: Tensor, count: int, cells: int) -> tuple[Tensor, Tensor]:
    """Which of `count` rows intervals hold, and the cells that these are summed into. `cell` [S] is an interval's."""
    target = last_claims(torch.where(lengths > 0, cell, cells), cells)
    size = count if lengths.is_meta else None  # what no values tell
    number = torch.arange(len(starts), device=starts.device)
    interval = torch.repeat_interleave(number, lengths, output_size=size)
    first = torch.cumsum(lengths, 0) - lengths
    row = starts[interval] + torch.arange(len(interval), device=starts.device) - first[interval]
    return row, target[interval]


CONSTANTS = """
        zero = Constant <value = int64[1] {0}> ()
        one = Constant <value = int64[1] {1}> ()
        origin = Constant <value = int64 {0}> ()
        step = Constant <value = int64 {1}> ()
"""

# From `cell` [K], numbers of cells or `cells` [1]: `target` [K], of which all but a cell's last are `cells`.
LAST_CLAIMS = """
        claims = Shape (cell)
        claim_count = Squeeze (claims)
        behind_claims = Add (claim_count, step)
        claim = Range (step, behind_claims, step)
        places = Add (cells, one)
        nobody = Expand (zero, places)
        owner = ScatterElements <axis = 0, reduction = "max"> (nobody, cell, claim)
        own = Gather (owner, cell)
        wins = Equal (own, claim)
        target = Where (wins, cell, cells)
"""

# From `rows` [R, C] and `row_cell` [R]: `sums` [cells, C].
ADD_ROWS = """
        row_index = Unsqueeze (row_cell, one)
        row_shape = Shape (rows)
        two = Constant <value = int64[1] {2}> ()
        width = Slice (row_shape, one, two)
        sums_shape = Concat <axis = 0> (places, width)
        blank = Constant <value = float[1] {0}> ()
        empty_sums = Expand (blank, sums_shape)
        all_sums = ScatterND <reduction = "add"> (empty_sums, row_index, rows)
        sums = Slice (all_sums, zero, cells)
"""

# From `total` [1], the number of rows: where intervals end, whether they hold a row, and of each row the `number` of its
# interval, from 1 on, or 0. Intervals share no rows.
INTERVALS = """
        ends = Add (interval_starts, interval_lengths)
        intervals = Shape (interval_starts)
        interval_count = Squeeze (intervals)
        behind_intervals = Add (interval_count, step)
        interval = Range (step, behind_intervals, step)
        slots = Add (total, one)
        unmarked = Expand (zero, slots)
        begun = ScatterElements <axis = 0, reduction = "add"> (unmarked, interval_starts, interval)
        left = Neg (interval)
        marks = ScatterElements <axis = 0, reduction = "add"> (begun, ends, left)
        running = CumSum (marks, origin)
        number = Slice (running, zero, total)
        used = Greater (number, zero)
        filled = Greater (interval_lengths, zero)
"""

# From `target` [S] of the intervals: `row_cell` [R].
CELLS_OF_ROWS = """
        targets = Concat <axis = 0> (cells, target)
        row_cell = Gather (targets, number)
"""
