"""Running maximum or minimum and its index as an ONNX Scan, because ONNX has no operator for it."""

from __future__ import annotations


def scan(values: str, indices: str, *, rank: int, axis: int, backwards: bool, greatest: bool) -> str:
    """Return statements that compute `values` and `indices` (i64) from `input`.

    NaN wins over every number, and the last of equal elements wins. A Scan has to fix its type: double, which
    represents all elements except integers beyond 2^53. A Scan of no steps, or over slices without elements, ends the
    process in ONNX Runtime, so extents of 0 are padded to 1, and the results are cut off.
    """
    shape = f"[{', '.join(f'extent_{d}' for d in range(rank) if d != axis % rank)}]" if rank > 1 else ""
    others = [d for d in range(rank) if d != axis % rank]
    beats = "GreaterOrEqual" if greatest else "LessOrEqual"
    direction = int(backwards)
    return f"""
        extents = Shape (input)
        zeros = Sub (extents, extents)
        one = Constant <value = int64[1] {{1}}> ()
        wide_extents = Max (extents, one)
        missing = Sub (wide_extents, extents)
        pads = Concat <axis = 0> (zeros, missing)
        given = Cast <to = 11> (input)
        wide = Pad (given, pads)
        axis = Constant <value = int64 {{{axis % rank}}}> ()
        steps = Gather (wide_extents, axis)
        zero = Constant <value = int64 {{0}}> ()
        step = Constant <value = int64 {{1}}> ()
        positions = Range (zero, steps, step)
        others = Constant <value = int64[{len(others)}] {{{", ".join(map(str, others))}}}> ()
        slice = Gather (wide_extents, others)
        nothing = Constant <value = double {{0}}> ()
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
        {indices} = Slice (all_indices, zeros, extents)
        extremes = Slice (all_extremes, zeros, extents)
        {values} = CastLike (extremes, input)
    """
