# SPDX-License-Identifier: Apache-2.0
"""Reduces rows by segments: a row's segment is the number of boundaries at or before it; rows are scattered to it."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0,)


def _scatter(values: Tensor, segment: Tensor, segments: int, start: float, reduce: str) -> Tensor:
    """Scatters rows to segments and removes the buckets of rows before the first and after the last segment."""
    buckets = values.new_full((segments + 2, values.shape[1]), start)
    return buckets.scatter_reduce(0, segment[:, None].expand_as(values), values, reduce)[1:-1]


def formula(src: Tensor, indptr: Tensor, reduce: str) -> Tensor:
    ends, segments = indptr.long(), indptr.shape[0] - 1
    marks = ends.new_zeros(src.shape[0] + 1).index_add(0, ends, torch.ones_like(ends))
    segment = marks.cumsum(0)[:-1]
    sizes = ends.diff()[:, None]
    if reduce in ("sum", "mean"):
        sums = _scatter(src, segment, segments, 0.0, "sum")
        return sums if reduce == "sum" else sums / sizes.clamp(min=1)
    if reduce in ("mul", "div"):
        return _scatter(src if reduce == "mul" else 1 / src, segment, segments, 1.0, "prod")
    first = _first_extreme(src.detach(), segment, segments, reduce)
    extreme = torch.cat([src, src.new_full((1, src.shape[1]), torch.nan)]).gather(0, first)
    return torch.where(sizes == 0, 0.0, extreme)


def _first_extreme(src: Tensor, segment: Tensor, segments: int, reduce: str) -> Tensor:
    """Returns the first row that attains the extremum of each segment and column, which receives the gradient.

    Where there is none, returns the number of rows.
    """
    start, rows = (torch.inf if reduce == "min" else -torch.inf), src.shape[0]
    index = segment[:, None].expand_as(src)
    numbers = src.nan_to_num(start, torch.inf, -torch.inf)
    extreme = numbers.new_full((segments + 2, src.shape[1]), start).scatter_reduce(0, index, numbers, f"a{reduce}")
    attains = (numbers == extreme.gather(0, index)) & ~src.isnan()
    number = torch.where(attains, torch.arange(rows, device=src.device)[:, None], rows)
    return _scatter(number, segment, segments, rows, "amin")


def body(call: Call, *, reduce: str) -> str | None:
    if call.opset < 18:
        return None
    return f"""
        first = Constant <value = int64[1] {{0}}> ()
        one = Constant <value = int64[1] {{1}}> ()
        ends = Cast <to = 7> (indptr)
        extents = Shape (src)
        rows = Gather (extents, first)
        channels = Gather (extents, one)
        rows_and_one = Add (rows, one)
        no_marks = Expand (first, rows_and_one)
        number_of_ends = Shape (ends)
        ones = Expand (one, number_of_ends)
        marks = ScatterElements <axis = 0, reduction = "add"> (no_marks, ends, ones)
        axis = Constant <value = int64 {{0}}> ()
        passed = CumSum (marks, axis)
        segment = Slice (passed, first, rows, first)
        column = Unsqueeze (segment, one)
        index = Expand (column, extents)
        buckets = Add (number_of_ends, one)
        shape = Concat <axis = 0> (buckets, channels)
        {_REDUCED[reduce]}
"""


_NULL = "null = Constant <value = float {0}> ()"

_UNIT = "unit = Constant <value = float {1}> ()"

_SIZE = """
        last_end = Sub (number_of_ends, one)
        begins = Slice (ends, first, last_end, first)
        stops = Slice (ends, one, number_of_ends, first)
        flat_sizes = Sub (stops, begins)
        sizes = Unsqueeze (flat_sizes, one)
        size = Cast <to = 1> (sizes)
"""


def _scattered(values: str, start: str, reduction: str, result: str) -> str:
    return f"""
        start_{result} = Expand ({start}, shape)
        all_{result} = ScatterElements <axis = 0, reduction = "{reduction}"> (start_{result}, index, {values})
        {result} = Slice (all_{result}, one, number_of_ends, first)
    """


def _extreme(reduction: str, start: str) -> str:
    return f"""
        {_NULL}
        minus_infinity = Log (null)
        infinity = Neg (minus_infinity)
        {_SIZE}
        is_nan = IsNaN (src)
        finite_or_start = Where (is_nan, {start}, src)
        is_number = Not (is_nan)
        number = Cast <to = 1> (is_number)
        {_scattered("number", "null", "add", "number_counts")}
{_scattered("finite_or_start", start, reduction, "extreme")}
        only_nan = Equal (number_counts, null)
        nan = Sub (infinity, infinity)
        or_nan = Where (only_nan, nan, extreme)
        is_empty = Equal (size, null)
        out = Where (is_empty, null, or_nan)
    """


_REDUCED = {
    "sum": _NULL + _scattered("src", "null", "add", "out"),
    "mean": _NULL
    + _scattered("src", "null", "add", "sums")
    + _UNIT
    + _SIZE
    + """
        divisor = Max (size, unit)
        out = Div (sums, divisor)
    """,
    "mul": _UNIT + _scattered("src", "unit", "mul", "out"),
    "div": f"{_UNIT}\n        inverse = Reciprocal (src)" + _scattered("inverse", "unit", "mul", "out"),
    "min": _extreme("min", "infinity"),
    "max": _extreme("max", "minus_infinity"),
}
