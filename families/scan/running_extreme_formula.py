"""The running maximum or minimum and its place, in ONNX: a Scan, since no operator has it."""

from __future__ import annotations


def scan(values: str, indices: str, *, rank: int, axis: int, backwards: bool, greatest: bool) -> str:
    """Statements that make `values` and `indices` (i64) of `input`; NaN is beyond every number, of equals the last counts."""
    others = [d for d in range(rank) if d != axis % rank]
    beats = "GreaterOrEqual" if greatest else "LessOrEqual"
    way = int(backwards)
    shape = f"[{', '.join(f'extent_{d}' for d in others)}]" if others else ""
    return f"""
        extents = Shape (input)
        axis = Constant <value = int64 {{{axis % rank}}}> ()
        length = Gather (extents, axis)
        zero = Constant <value = int64 {{0}}> ()
        step = Constant <value = int64 {{1}}> ()
        places = Range (zero, length, step)
        others = Constant <value = int64[{len(others)}] {{{", ".join(map(str, others))}}}> ()
        slice = Gather (extents, others)
        infinity = Constant <value_float = 3.4e38> ()
        beyond = Mul (infinity, infinity)
        worst = {"Neg" if greatest else "Identity"} (beyond)
        first = Expand (worst, slice)
        first_place = Expand (zero, slice)
        last, last_place, {values}, {indices} = Scan <num_scan_inputs = 2, scan_input_axes = [{axis % rank}, 0],
            scan_input_directions = [{way}, 0], scan_output_axes = [{axis % rank}, {axis % rank}],
            scan_output_directions = [{way}, {way}],
            body = running (float{shape} best, int64{shape} best_place, float{shape} value, int64 place)
                => (float{shape} next, int64{shape} next_place, float{shape} next_value, int64{shape} next_index) {{
                beats = {beats} (value, best)
                is_nan = IsNaN (value)
                takes = Or (beats, is_nan)
                next = Where (takes, value, best)
                next_place = Where (takes, place, best_place)
                next_value = Identity (next)
                next_index = Identity (next_place)
            }}>
            (first, first_place, input, places)
    """
