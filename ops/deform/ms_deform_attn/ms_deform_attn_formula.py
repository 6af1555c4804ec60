# SPDX-License-Identifier: Apache-2.0
"""Multi-scale deformable attention."""

from __future__ import annotations

from torch import Tensor

from polyop.formulas import Call
from polyop.formulas.deform_attn_formula import attend_at_locations, example_at_locations

DIFFERENTIABLE = (0, 3, 4)


def formula(value: Tensor, shapes: Tensor, starts: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
    images, queries, heads = locations.shape[:3]
    samples = attend_at_locations(value, shapes, starts, locations, weights)
    return samples.reshape(images, queries, heads * value.shape[3])


def example(call: Call) -> list[Tensor]:
    return example_at_locations()
