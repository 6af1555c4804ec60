# SPDX-License-Identifier: Apache-2.0
"""Ranges of numbers, one after the other."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["ranges"]


def ranges(first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the numbers of all ranges [first, last), and the index of the range of each."""
    sizes = (last - first).clamp(min=0).long()
    group = torch.arange(first.numel(), device=first.device).repeat_interleave(sizes)
    start = first.long() - (sizes.cumsum(0) - sizes)
    return torch.arange(group.numel(), device=first.device) + start[group], group
