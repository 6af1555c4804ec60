"""OpenVINO's deformable convolution v1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.deform_conv_formula import deform_conv, example_of

DIFFERENTIABLE = (0, 1, 2)


def _rule(
    strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int], group: int, deformable_groups: int, **_: Any
) -> dict[str, Any]:
    return {
        "stride": strides, "padding": pads[:2] if len(pads) == 4 else pads, "dilation": dilations, "groups": group,
        "deform_groups": deformable_groups,
    }  # fmt: skip


def formula(input: Tensor, offset: Tensor, weight: Tensor, **attributes: Any) -> Tensor:
    return deform_conv(input, offset, None, weight, **_rule(**attributes))


def example(call: Call, *, pads: Sequence[int], **attributes: Any) -> list[Tensor]:
    rule = _rule(pads=pads, **attributes)
    tensors = example_of(**rule)
    sides = pads if len(pads) == 4 else [pads[0]] * 4
    outputs = []
    for axis in range(2):
        stride, dilation = (rule[name][axis % len(rule[name])] for name in ("stride", "dilation"))
        reach = dilation * (tensors["weight"].shape[2 + axis] - 1) + 1
        extent = tensors["input"].shape[2 + axis] + sides[axis] + sides[2 + axis]
        outputs.append((extent - reach) // stride + 1)
    points = tensors["offset"].shape[1]
    return [tensors["input"], torch.rand(2, points, *outputs), tensors["weight"]]
