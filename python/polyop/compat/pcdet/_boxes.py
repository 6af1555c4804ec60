# SPDX-License-Identifier: Apache-2.0
"""OpenPCDet's boxes as polyop's operators take them."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["standing"]


def standing(boxes: Tensor, margin: float = 1e-5) -> Tensor:
    """Returns boxes [..., 7] with z at the bottom, and `margin` added on each side along x and y, as in OpenPCDet."""
    x, y, z, dx, dy, dz, heading = boxes.unbind(-1)
    return torch.stack([x, y, z - dz / 2, dx + 2 * margin, dy + 2 * margin, dz, heading], -1)
