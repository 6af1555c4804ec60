# SPDX-License-Identifier: Apache-2.0
"""A convolution that is 0 where the mask is not positive."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 2, 3)


def formula(
    features: Tensor, mask: Tensor, weight: Tensor, bias: Tensor | None = None, *, stride: Sequence[int],
    padding: Sequence[int],
) -> Tensor:  # fmt: skip
    convolved = torch.nn.functional.conv2d(features, weight, bias, 1, tuple((*padding, *padding)[:2]))
    where = mask if mask.dtype == torch.bool else mask > 0
    return torch.where(where[:, None], convolved, 0)


def body(call: Call, *, stride: Sequence[int], padding: Sequence[int]) -> str:
    rows, columns = (*padding, *padding)[:2]
    filters = "weight, bias" if call.has("bias") else "weight"
    return f"""
        one = Constant <value = int64[1] {{1}}> ()
        nothing = Constant <value = float {{0.0}}> ()
        convolved = Conv <pads = [{rows}, {columns}, {rows}, {columns}]> (features, {filters})
        number = Cast <to = 1> (mask)
        positive = Greater (number, nothing)
        where = Unsqueeze (positive, one)
        none = CastLike (nothing, convolved)
        output = Where (where, convolved, none)
    """
