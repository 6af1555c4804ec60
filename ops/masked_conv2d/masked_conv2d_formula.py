"""A convolution, and 0 where the mask is not positive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


def example(call: Call, *, padding: Sequence[int], **_: Any) -> list[Tensor]:
    rows, columns = (4 + 2 * p for p in (*padding, *padding)[:2])
    tensors = [torch.rand(1, 3, 6, 6), torch.rand(1, rows, columns), torch.rand(4, 3, 3, 3), torch.rand(4)]
    return tensors if call.has("bias") else tensors[:3]
