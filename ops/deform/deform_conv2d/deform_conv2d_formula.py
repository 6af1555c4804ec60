# SPDX-License-Identifier: Apache-2.0
"""Deformable convolution v1."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.deform_conv_formula import deform_conv, example_of

DIFFERENTIABLE = (0, 1, 2)


def formula(input: Tensor, offset: Tensor, weight: Tensor, **attributes: Any) -> Tensor:
    return deform_conv(input, offset, None, weight, **attributes)


def example(call: Call, **attributes: Any) -> list[Tensor]:
    tensors = example_of(**attributes)
    return [tensors[name] for name in ("input", "offset", "weight")]
