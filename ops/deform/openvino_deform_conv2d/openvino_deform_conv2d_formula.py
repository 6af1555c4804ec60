# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's deformable convolution v1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.deform_conv_formula import deform_conv, example_with_sides

DIFFERENTIABLE = (0, 1, 2)


def _rule(
    strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int], group: int, deformable_groups: int, **_: Any
) -> dict[str, Any]:
    return {
        "stride": strides,
        "padding": pads[:2] if len(pads) == 4 else pads,
        "dilation": dilations,
        "groups": group,
        "deform_groups": deformable_groups,
    }


def formula(input: Tensor, offset: Tensor, weight: Tensor, **attributes: Any) -> Tensor:
    return deform_conv(input, offset, None, weight, **_rule(**attributes))


def example(call: Call, *, pads: Sequence[int], **attributes: Any) -> list[Tensor]:
    tensors = example_with_sides(pads, **_rule(pads=pads, **attributes))
    return [tensors[name] for name in ("input", "offset", "weight")]
