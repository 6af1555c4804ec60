# SPDX-License-Identifier: Apache-2.0
"""Deformable convolution between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyop.formulas import Call, NoBodyError
from polyop.formulas.quantized_formula import body_around


def body(
    call: Call, *, dilations: Sequence[int], group: int, kernel_shape: Sequence[int], offset_group: int,
    pads: Sequence[int], strides: Sequence[int], **quantization: Any,
) -> str:  # fmt: skip
    if call.opset < 19:
        raise NoBodyError("ONNX has DeformConv from opset 19 on")
    lists = {"dilations": dilations, "pads": pads, "strides": strides}
    if any(kernel_shape):
        lists["kernel_shape"] = kernel_shape
    attributes = ", ".join(f"{name} = [{', '.join(map(str, values))}]" for name, values in lists.items())
    inputs = ["real", "filters", "offset", "B" if call.has("B") else "", "mask" if call.has("mask") else ""]
    while not inputs[-1]:
        inputs.pop()
    return body_around(
        call,
        "X",
        "Y",
        f"""
        filters = DequantizeLinear <axis = 0> (W, W_scale)
        result = DeformConv <{attributes}, group = {group}, offset_group = {offset_group}> ({", ".join(inputs)})
        """,
        **quantization,
    )
