# SPDX-License-Identifier: Apache-2.0
"""Running maximum or minimum and its index as an ONNX Scan, because ONNX has no operator for it."""

from __future__ import annotations

from polyop.formulas.padded_scan_formula import prepare


def scan(values: str, indices: str, *, rank: int, axis: int, backwards: bool, greatest: bool) -> str:
    """Return statements that compute `values` and `indices` (i64) from `input`.

    NaN wins over every number, and the last of equal elements wins.
    """
    axis %= rank
    statements, shape = prepare(rank, axis)
    beats = "GreaterOrEqual" if greatest else "LessOrEqual"
    direction = int(backwards)
    return f"""
        {statements}
        axis = Constant <value = int64 {{{axis}}}> ()
        steps = Gather (wide_extents, axis)
        zero = Constant <value = int64 {{0}}> ()
        step = Constant <value = int64 {{1}}> ()
        positions = Range (zero, steps, step)
        nothing = Constant <value = double {{0}}> ()
        first = Expand (nothing, slice)
        no_index = Constant <value = int64 {{-1}}> ()
        first_index = Expand (no_index, slice)
        last, last_index, all_extremes, all_indices = Scan <num_scan_inputs = 2, scan_input_axes = [{axis}, 0],
            scan_input_directions = [{direction}, 0], scan_output_axes = [{axis}, {axis}],
            scan_output_directions = [{direction}, {direction}],
            body = running (double{shape} best, int64{shape} best_index, double{shape} value, int64 position)
                => (double{shape} next, int64{shape} next_best, double{shape} next_value, int64{shape} next_index) {{
                beats = {beats} (value, best)
                is_nan = IsNaN (value)
                is_first = Equal (best_index, no_index)
                beats_or_nan = Or (beats, is_nan)
                takes = Or (beats_or_nan, is_first)
                next = Where (takes, value, best)
                next_best = Where (takes, position, best_index)
                next_value = Identity (next)
                next_index = Identity (next_best)
            }}>
            (first, first_index, wide, positions)
        {indices} = Slice (all_indices, zeros, extents)
        extremes = Slice (all_extremes, zeros, extents)
        {values} = CastLike (extremes, input)
    """
