# SPDX-License-Identifier: Apache-2.0
"""Boxes (x1, y1, x2, y2) in pixels: overlaps, and boxes relative to others."""

from __future__ import annotations

import torch
from torch import Tensor


def area(boxes: Tensor) -> Tensor:
    return (boxes[..., 2] - boxes[..., 0]).clamp(min=0) * (boxes[..., 3] - boxes[..., 1]).clamp(min=0)


def overlaps(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the IoU and the generalized IoU of boxes whose leading dimensions are broadcast."""
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    shared = area(torch.cat([low, high], -1))
    union = (area(a) + area(b) - shared).clamp(min=1e-6)
    hull = torch.cat([torch.minimum(a[..., :2], b[..., :2]), torch.maximum(a[..., 2:], b[..., 2:])], -1)
    iou, around = shared / union, area(hull).clamp(min=1e-6)
    return iou, iou - (around - union) / around


def pairwise(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the IoU and the generalized IoU [..., N, M] of all pairs of boxes [..., N, 4] and [..., M, 4]."""
    return overlaps(a[..., :, None, :], b[..., None, :, :])


def centre_and_size(boxes: Tensor) -> tuple[Tensor, Tensor]:
    return (boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]


def refine(boxes: Tensor, deltas: Tensor) -> Tensor:
    """Shifts boxes by the deltas (x, y), in sizes of the box, and scales them by the exponentials of (w, h)."""
    centre, size = centre_and_size(boxes)
    centre, half = centre + deltas[..., :2] * size, size * deltas[..., 2:].clamp(-3, 3).exp() / 2
    return torch.cat([centre - half, centre + half], -1)
