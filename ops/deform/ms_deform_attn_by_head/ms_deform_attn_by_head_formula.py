# SPDX-License-Identifier: Apache-2.0
"""Multi-scale deformable attention with a separate dimension for the heads."""

from __future__ import annotations

from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.deform_attn_formula import attend_at_locations, example_at_locations

DIFFERENTIABLE = (0, 3, 4)


def formula(value: Tensor, shapes: Tensor, starts: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
    return attend_at_locations(value, shapes, starts, locations, weights)


def example(call: Call) -> list[Tensor]:
    return example_at_locations()
