# SPDX-License-Identifier: Apache-2.0
"""What an ONNX Scan over any input needs."""

from __future__ import annotations


def prepare(rank: int, axis: int) -> tuple[str, str]:
    """Returns statements, and the shape of a slice in the types of a Scan's body, for a Scan of `input` along `axis`.

    A Scan has to fix its type: double, which represents all elements except integers beyond 2^53. A Scan of no steps,
    or over slices without elements, ends the process in ONNX Runtime, so extents of 0 are padded to 1. The statements
    compute the double tensor `wide`, its extents, `wide_extents`, and those of a slice, `slice`; Slice (result, zeros,
    extents) cuts off the padding. Requires: 0 <= axis < rank.
    """
    others = [d for d in range(rank) if d != axis]
    shape = f"[{', '.join(f'extent_{d}' for d in others)}]" if others else ""
    statements = f"""
        extents = Shape (input)
        zeros = Sub (extents, extents)
        one = Constant <value = int64[1] {{1}}> ()
        wide_extents = Max (extents, one)
        missing = Sub (wide_extents, extents)
        pads = Concat <axis = 0> (zeros, missing)
        given = Cast <to = 11> (input)
        wide = Pad (given, pads)
        others = Constant <value = int64[{len(others)}] {{{", ".join(map(str, others))}}}> ()
        slice = Gather (wide_extents, others)
    """
    return statements, shape
