# SPDX-License-Identifier: Apache-2.0
"""ONNX's DeformConv."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.deform_conv_formula import deform_conv, example_with_sides

DIFFERENTIABLE = (0, 1, 2, 3, 4)


def _rule(
    strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int], group: int, offset_group: int, **_: Any
) -> dict[str, Any]:
    return {
        "stride": strides,
        "padding": pads[:2] if len(pads) == 4 else pads,
        "dilation": dilations,
        "groups": group,
        "deform_groups": offset_group,
    }


def formula(
    x: Tensor, weight: Tensor, offset: Tensor, bias: Tensor | None, mask: Tensor | None, **attributes: Any
) -> Tensor:
    out = deform_conv(x, offset, mask, weight, **_rule(**attributes))
    return out if bias is None else out + bias[:, None, None]


def example(call: Call, *, pads: Sequence[int], **attributes: Any) -> list[Tensor | None]:
    tensors = example_with_sides(pads, **_rule(pads=pads, **attributes))
    return [
        tensors["input"],
        tensors["weight"],
        tensors["offset"],
        tensors["bias"] if call.has("B") else None,
        tensors["mask"] if call.has("mask") else None,
    ]
