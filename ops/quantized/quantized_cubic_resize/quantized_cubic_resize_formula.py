# SPDX-License-Identifier: Apache-2.0
"""Bicubic resizing between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from typing import Any

from polyop.formulas import Call
from polyop.formulas.quantized_formula import body_around


def body(
    call: Call, *, coordinate_transformation_mode: str, cubic_coeff_a: float, exclude_outside: int, **quantization: Any
) -> str:
    # Reshape is the identity; it states that there are four sizes, without which ONNX Runtime rejects Resize.
    return body_around(
        call,
        "input",
        "output",
        f"""
        whole = Shape (input)
        begin = Constant <value = int64[1] {{0}}> ()
        two = Constant <value = int64[1] {{2}}> ()
        kept = Slice (whole, begin, two)
        joined = Concat <axis = 0> (kept, sizes)
        four = Constant <value = int64[1] {{4}}> ()
        all_sizes = Reshape (joined, four)
        result = Resize <mode = "cubic", cubic_coeff_a: float = {cubic_coeff_a!r}, exclude_outside = {int(exclude_outside)},
            coordinate_transformation_mode = "{coordinate_transformation_mode}"> (real, , , all_sizes)
        """,
        **quantization,
    )
