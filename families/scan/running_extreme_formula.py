"""The running maximum or minimum and its place, in ONNX: a Scan, since no operator has it."""

from __future__ import annotations


def scan(values: str, indices: str, *, rank: int, axis: int, backwards: bool, greatest: bool) -> str:
    """Statements that make `values` and `indices` (i64) of `input`; NaN is beyond every number, of equals the last counts.

    A Scan must name the type that it runs in: double, which holds all elements but integers beyond 2^53.
    """
    shape = f"[{', '.join(f'extent_{d}' for d in range(rank) if d != axis % rank)}]" if rank > 1 else ""
    others = [d for d in range(rank) if d != axis % rank]
    beats = "GreaterOrEqual" if greatest else "LessOrEqual"
    way = int(backwards)
    return f"""
        extents = Shape (input)
        axis = Constant <value = int64 {{{axis % rank}}}> ()
        length = Gather (extents, axis)
        zero = Constant <value = int64 {{0}}> ()
        step = Constant <value = int64 {{1}}> ()
        places = Range (zero, length, step)
        others = Constant <value = int64[{len(others)}] {{{", ".join(map(str, others))}}}> ()
        slice = Gather (extents, others)
        wide = Cast <to = 11> (input)
        nothing = Constant <value = double {{0}}> ()
        first = Expand (nothing, slice)
        nowhere = Constant <value = int64 {{-1}}> ()
        first_place = Expand (nowhere, slice)
        last, last_place, extremes, {indices} = Scan <num_scan_inputs = 2, scan_input_axes = [{axis % rank}, 0],
            scan_input_directions = [{way}, 0], scan_output_axes = [{axis % rank}, {axis % rank}],
            scan_output_directions = [{way}, {way}],
            body = running (double{shape} best, int64{shape} best_place, double{shape} value, int64 place)
                => (double{shape} next, int64{shape} next_place, double{shape} next_value, int64{shape} next_index) {{
                beats = {beats} (value, best)
                is_nan = IsNaN (value)
                is_first = Equal (best_place, nowhere)
                beats_or_nan = Or (beats, is_nan)
                takes = Or (beats_or_nan, is_first)
                next = Where (takes, value, best)
                next_place = Where (takes, place, best_place)
                next_value = Identity (next)
                next_index = Identity (next_place)
            }}>
            (first, first_place, wide, places)
        {values} = CastLike (extremes, input)
    """
