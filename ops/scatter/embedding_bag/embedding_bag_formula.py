# SPDX-License-Identifier: Apache-2.0
"""Reduces rows by bag: an index's bag is the number of offsets at or before it, less one; rows are scattered to it."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 3)


def formula(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    per_sample_weights: Tensor | None,
    mode: str,
    include_last_offset: int,
    padding_idx: int,
) -> Tensor:
    starts, count, bags = offsets.long(), indices.shape[0], offsets.shape[0] - include_last_offset
    marks = starts.new_zeros(count + 1).index_add(0, starts, torch.ones_like(starts))
    bag = marks.cumsum(0)[:-1] - 1
    # Padding, and with include_last_offset the indices after the last bag, go to a bucket that is removed.
    bag = torch.where((indices == padding_idx) | (bag >= bags), bags, bag)
    rows = weight.index_select(0, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    if mode == "max":
        first = _first_greatest(rows.detach(), bag, bags)
        return torch.cat([rows, rows.new_zeros(1, rows.shape[1])]).gather(0, first)
    sums = rows.new_zeros(bags + 1, rows.shape[1]).index_add(0, bag, rows)[:-1]
    if mode == "sum":
        return sums
    sizes = starts.new_zeros(bags + 1).index_add(0, bag, torch.ones_like(bag))[:-1]
    return sums / sizes.clamp(min=1)[:, None]


def _first_greatest(rows: Tensor, bag: Tensor, bags: int) -> Tensor:
    """Returns the row that gives each bag's maximum: the bag's first one if it is NaN, else the first greatest one.

    Where there is none, returns the number of rows.
    """
    count = rows.shape[0]
    index = bag[:, None].expand_as(rows)
    number = torch.arange(count, device=rows.device)[:, None].expand_as(rows)
    none = number.new_full((bags + 1, rows.shape[1]), count)
    first = none.scatter_reduce(0, index, number, "amin")
    numbers = torch.where(rows.isnan(), torch.where(number == first.gather(0, index), torch.inf, -torch.inf), rows)
    greatest = numbers.new_full(none.shape, -torch.inf).scatter_reduce(0, index, numbers, "amax")
    # A first row of NaN is before all rows that attain infinity.
    attains = (numbers == greatest.gather(0, index)) & (~rows.isnan() | (number == first.gather(0, index)))
    return none.scatter_reduce(0, index, torch.where(attains, number, count), "amin")[:-1]


def body(call: Call, *, mode: str, include_last_offset: int, padding_idx: int) -> str | None:
    if call.opset < 18:
        return None
    weighted = "rows = Identity (gathered)"
    if call.has("per_sample_weights"):
        weighted = """column_of_weights = Unsqueeze (per_sample_weights, one)
        rows = Mul (gathered, column_of_weights)"""
    return f"""
        first = Constant <value = int64[1] {{0}}> ()
        one = Constant <value = int64[1] {{1}}> ()
        padding = Constant <value = int64[1] {{{padding_idx}}}> ()
        last = Constant <value = int64[1] {{{include_last_offset}}}> ()
        axis = Constant <value = int64 {{0}}> ()
        number = Constant <value = float {{0}}> ()
        null = CastLike (number, weight)
        starts = Cast <to = 7> (offsets)
        index = Cast <to = 7> (indices)
        count = Shape (index)
        count_and_one = Add (count, one)
        number_of_starts = Shape (starts)
        bags = Sub (number_of_starts, last)
        no_marks = Expand (first, count_and_one)
        ones = Expand (one, number_of_starts)
        marks = ScatterElements <axis = 0, reduction = "add"> (no_marks, starts, ones)
        passed = CumSum (marks, axis)
        started = Slice (passed, first, count, first)
        bag_of_all = Sub (started, one)
        is_padding = Equal (index, padding)
        is_after = GreaterOrEqual (bag_of_all, bags)
        is_in_none = Or (is_padding, is_after)
        bag = Where (is_in_none, bags, bag_of_all)
        gathered = Gather <axis = 0> (weight, index)
        {weighted}
        extents = Shape (rows)
        number_of_extents = Shape (extents)
        channels = Slice (extents, one, number_of_extents, first)
        column = Unsqueeze (bag, one)
        bag_of_element = Expand (column, extents)
        buckets = Add (bags, one)
        shape = Concat <axis = 0> (buckets, channels)
        {_REDUCED[mode]}
"""


_SIZE = """
        no_indices = Expand (first, buckets)
        each = Expand (one, count)
        sizes_and_rest = ScatterElements <axis = 0, reduction = "add"> (no_indices, bag, each)
        flat_sizes = Slice (sizes_and_rest, first, bags, first)
        sizes = Unsqueeze (flat_sizes, one)
"""

_SUM = """
        zeros = Expand (null, shape)
        all_sums = ScatterElements <axis = 0, reduction = "add"> (zeros, bag_of_element, rows)
"""

_REDUCED = {
    "sum": _SUM + "        output = Slice (all_sums, first, bags, first)",
    "mean": _SUM
    + _SIZE
    + """
        sums = Slice (all_sums, first, bags, first)
        at_least_one = Max (sizes, one)
        divisor = CastLike (at_least_one, weight)
        output = Div (sums, divisor)
    """,
    # NaN in a bag's first row stays; in other rows, it is ignored.
    "max": _SIZE
    + """
        minus_infinity = Log (null)
        is_nan = IsNaN (rows)
        numbers = Where (is_nan, minus_infinity, rows)
        starts_of_max = Expand (minus_infinity, shape)
        all_max = ScatterElements <axis = 0, reduction = "max"> (starts_of_max, bag_of_element, numbers)
        greatest = Slice (all_max, first, bags, first)
        flat_count = Squeeze (count, first)
        flat_zero = Squeeze (first, first)
        flat_one = Squeeze (one, first)
        positions = Range (flat_zero, flat_count, flat_one)
        no_positions = Expand (count, buckets)
        all_first = ScatterElements <axis = 0, reduction = "min"> (no_positions, bag, positions)
        position_of_first = Slice (all_first, first, bags, first)
        row_of_zeros_shape = Concat <axis = 0> (one, channels)
        row_of_zeros = Expand (null, row_of_zeros_shape)
        rows_and_zeros = Concat <axis = 0> (rows, row_of_zeros)
        first_rows = Gather <axis = 0> (rows_and_zeros, position_of_first)
        first_is_nan = IsNaN (first_rows)
        of_rows = Where (first_is_nan, first_rows, greatest)
        is_empty = Equal (sizes, first)
        output = Where (is_empty, null, of_rows)
    """,
}
