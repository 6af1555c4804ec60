# SPDX-License-Identifier: Apache-2.0
"""Deformable convolution v2."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.deform_conv_formula import deform_conv, example_of

DIFFERENTIABLE = (0, 1, 2, 3, 4)


def formula(
    input: Tensor, offset: Tensor, mask: Tensor, weight: Tensor, bias: Tensor | None, **attributes: Any
) -> Tensor:
    out = deform_conv(input, offset, mask, weight, **attributes)
    return out if bias is None else out + bias[:, None, None]


def example(call: Call, **attributes: Any) -> list[Tensor | None]:
    tensors = example_of(**attributes)
    tensors["bias"] = tensors["bias"] if call.has("bias") else None
    return [tensors[name] for name in ("input", "offset", "mask", "weight", "bias")]
