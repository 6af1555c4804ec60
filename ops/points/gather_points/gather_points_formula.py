# SPDX-License-Identifier: Apache-2.0
"""Gathers the features of selected points: ONNX's GatherElements."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.gathered_columns_formula import gather_columns

DIFFERENTIABLE = (0,)


def formula(features: Tensor, idx: Tensor) -> Tensor:
    return gather_columns(features, idx)


def example(call: Call) -> list[Tensor]:
    return [torch.rand(2, 3, 5), torch.randint(0, 5, (2, 4))]
