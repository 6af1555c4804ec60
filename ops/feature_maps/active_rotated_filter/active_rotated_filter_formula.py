# SPDX-License-Identifier: Apache-2.0
"""Rotated filters: gathers, for each position of each rotation, the last entry that is copied to it."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0,)


def formula(input: Tensor, indices: Tensor) -> Tensor:
    filters, planes, orientations, height, width = input.shape
    rotations, entries = indices.shape[3], orientations * height * width
    entry = torch.arange(entries, device=input.device)
    copied = indices.reshape(entries, rotations).T[:, None].long() - 1 == entry[:, None]  # [rotation, position, entry]
    source = torch.where(copied, entry, -1).amax(2).flatten()
    gathered = input.reshape(filters, planes, entries).index_select(2, source.clamp(min=0))
    rotated = torch.where(source >= 0, gathered, 0).reshape(filters, planes, rotations, entries).transpose(1, 2)
    return rotated.reshape(filters * rotations, planes * orientations, height, width)


def example(call: Call) -> list[Tensor]:
    return [torch.rand(2, 3, 2, 3, 2), (torch.arange(24).reshape(2, 3, 2, 2) % 12 + 1).int()]
