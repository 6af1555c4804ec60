"""Running maximum or minimum and its index as an ONNX Scan, because ONNX has no operator for it."""

from __future__ import annotations


def scan(values: str, indices: str, *, rank: int, axis: int, backwards: bool, greatest: bool) -> str:
    """Return statements that compute `values` and `indices` (i64) from `input`.

    NaN wins over every number, and the last of equal elements wins. A Scan has to fix its type: double, which
    represents all elements except integers beyond 2^53. A Scan of no steps ends the process in ONNX Runtime, so an
    extent of 0 gets one step, whose results are cut off.
    """
    shape = f"[{', '.join(f'extent_{d}' for d in range(rank) if d != axis % rank)}]" if rank > 1 else ""
    others = [d for d in range(rank) if d != axis % rank]
    beats = "GreaterOrEqual" if greatest else "LessOrEqual"
    direction = int(backwards)
    return f"""
        extents = Shape (input)
        axis = Constant <value = int64 {{{axis % rank}}}> ()
        length = Gather (extents, axis)
        zero = Constant <value = int64 {{0}}> ()
        step = Constant <value = int64 {{1}}> ()
        steps = Max (length, step)
        positions = Range (zero, steps, step)
        others = Constant <value = int64[{len(others)}] {{{", ".join(map(str, others))}}}> ()
        slice = Gather (extents, others)
        nothing = Constant <value = double {{0}}> ()
        one = Constant <value = int64[1] {{1}}> ()
        zeros_1 = Sub (one, one)
        along = Constant <value = int64[1] {{{axis % rank}}}> ()
        extent = Unsqueeze (length, zeros_1)
        missing = Sub (one, extent)
        more = Max (missing, zeros_1)
        padding_extents = ScatterElements (extents, along, more)
        padding = Expand (nothing, padding_extents)
        given = Cast <to = 11> (input)
        wide = Concat <axis = {axis % rank}> (given, padding)
        first = Expand (nothing, slice)
        no_index = Constant <value = int64 {{-1}}> ()
        first_index = Expand (no_index, slice)
        last, last_index, all_extremes, all_indices = Scan <num_scan_inputs = 2, scan_input_axes = [{axis % rank}, 0],
            scan_input_directions = [{direction}, 0], scan_output_axes = [{axis % rank}, {axis % rank}],
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
        {indices} = Slice (all_indices, zeros_1, extent, along)
        extremes = Slice (all_extremes, zeros_1, extent, along)
        {values} = CastLike (extremes, input)
    """
