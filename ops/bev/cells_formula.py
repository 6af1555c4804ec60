# SPDX-License-Identifier: Apache-2.0
"""Scatter rows into the cells of a canvas, in torch and in ONNX's text form.

If several writes target one cell, the last one wins. Rows without a cell go to an extra cell after the canvas, which is
cut off.
"""

from __future__ import annotations

import torch
from torch import Tensor


def last_writes(cell: Tensor, cells: int) -> Tensor:
    """Return the cells [K] of writes, replaced by `cells` for all but the last write to a cell."""
    number = torch.arange(len(cell), device=cell.device)
    owner = number.new_full((cells + 1,), -1).scatter_reduce(0, cell, number, "amax")
    return torch.where(owner[cell] == number, cell, cells)


def add_rows(rows: Tensor, cell: Tensor, cells: int) -> Tensor:
    """Sum rows [R, C] into their cells -> [cells, C]."""
    wide = rows.to(torch.promote_types(rows.dtype, torch.float32))
    return wide.new_zeros(cells + 1, rows.shape[1]).index_add(0, cell, wide)[:cells].to(rows.dtype)


def interval_rows(starts: Tensor, lengths: Tensor, cell: Tensor, count: int, cells: int) -> tuple[Tensor, Tensor]:
    """Return the rows inside intervals, of `count` rows, and the cell of each. `cell` [S] is that of each interval."""
    target = last_writes(torch.where(lengths > 0, cell, cells), cells)
    size = count if lengths.is_meta else None  # shapes alone do not tell
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

# Computes `target` [K] from `cell` [K], which holds indices of cells, or `cells` [1] for none: all but the last write
# to a cell become `cells`.
LAST_WRITES = """
        writes = Shape (cell)
        write_count = Squeeze (writes)
        after_writes = Add (write_count, step)
        write = Range (step, after_writes, step)
        padded_cells = Add (cells, one)
        no_owner = Expand (zero, padded_cells)
        owner = ScatterElements <axis = 0, reduction = "max"> (no_owner, cell, write)
        cell_owner = Gather (owner, cell)
        wins = Equal (cell_owner, write)
        target = Where (wins, cell, cells)
"""

# Computes `sums` [cells, C] from `rows` [R, C] and `row_cell` [R].
ADD_ROWS = """
        row_index = Unsqueeze (row_cell, one)
        row_shape = Shape (rows)
        two = Constant <value = int64[1] {2}> ()
        width = Slice (row_shape, one, two)
        sums_shape = Concat <axis = 0> (padded_cells, width)
        blank = Constant <value = float[1] {0}> ()
        empty_sums = Expand (blank, sums_shape)
        all_sums = ScatterND <reduction = "add"> (empty_sums, row_index, rows)
        sums = Slice (all_sums, zero, cells)
"""

# Computes from `total` [1], the number of rows: the `ends` of intervals, whether they are `filled`, and for each row
# the `number` of its interval, starting at 1, or 0. Requires: intervals do not overlap.
INTERVALS = """
        ends = Add (interval_starts, interval_lengths)
        intervals = Shape (interval_starts)
        interval_count = Squeeze (intervals)
        after_intervals = Add (interval_count, step)
        interval = Range (step, after_intervals, step)
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

# Computes `row_cell` [R] from `target` [S], the cell of each interval.
CELLS_OF_ROWS = """
        targets = Concat <axis = 0> (cells, target)
        row_cell = Gather (targets, number)
"""
