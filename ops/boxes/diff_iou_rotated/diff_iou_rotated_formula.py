# SPDX-License-Identifier: Apache-2.0
"""The IoU of rotated boxes: the intersection's area from the parts of the sides that bound it, without sorting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1)


def _length(low: Tensor, high: Tensor, a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor]) -> Tensor:
    """Returns the length of the part of [low, high] that is between both numbers of `a` and both of `b`."""
    begin = torch.maximum(low, torch.maximum(torch.minimum(*a), torch.minimum(*b)))
    end = torch.minimum(high, torch.minimum(torch.maximum(*a), torch.maximum(*b)))
    return (end - begin).clamp(min=0)


def _weight(parallel: Tensor) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Returns a function that gives the weight of a side. A side that is parallel to its twin in the other box counts
    if it is inside, and half if both coincide.
    """

    def weight(side: Tensor, twin: Tensor, opposite: Tensor) -> Tensor:
        inside = ((side < twin).to(side.dtype) + (side <= twin).to(side.dtype)) / 2 * (side > opposite).to(side.dtype)
        return torch.where(parallel, inside, 1)

    return weight


def _cosine(angle: Tensor) -> Tensor:
    """Returns the cosine, by the sine: older ONNX Runtimes have no cosine of doubles."""
    return torch.sin(angle + math.pi / 2)


def _shared_area(a: Tensor, b: Tensor) -> Tensor:
    """Returns the area of the intersection of rectangles (x, y, w, h, alpha)."""
    half_width, half_height = a[..., 2].abs() / 2, a[..., 3].abs() / 2
    w, h = b[..., 2].abs() / 2, b[..., 3].abs() / 2
    dx, dy = b[..., 0] - a[..., 0], b[..., 1] - a[..., 1]
    cosine, sine = _cosine(a[..., 4]), a[..., 4].sin()
    angle = b[..., 4] - a[..., 4]
    c, s = _cosine(angle), angle.sin()
    # The sides of b are named such that it is rotated by at most 45 degrees from a.
    exchanged = s.abs() > c.abs()
    c, s = torch.where(exchanged, s, c), torch.where(exchanged, -c, s)
    w, h = torch.where(exchanged, h, w), torch.where(exchanged, w, h)
    flip = torch.where(c < 0, -1.0, 1.0).to(c.dtype)
    c, s = c * flip, s * flip

    # The frame of a's axes, with the origin at the centre of b.
    at_u, at_v = dx * cosine + dy * sine, dy * cosine - dx * sine
    right, left, top, bottom = half_width - at_u, -half_width - at_u, half_height - at_v, -half_height - at_v
    parallel = s == 0
    divisor, t = torch.where(parallel, 1, s), s / (1 + c)
    far = torch.full_like(c, torch.inf)
    weight = _weight(parallel)

    def twins(first: Tensor, second: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
        """Returns where a side intersects the lines of two sides that may be parallel to it."""
        return (
            torch.where(parallel, far, first / divisor + shift),
            torch.where(parallel, -far, second / divisor + shift),
        )

    def side_u(u: Tensor) -> Tensor:
        return _length(bottom, top, twins(w - u, -w - u, u * t), ((h + u * s) / c, (u * s - h) / c))

    def side_v(v: Tensor) -> Tensor:
        return _length(left, right, twins(v - h, v + h, -v * t), ((w - v * s) / c, (-w - v * s) / c))

    def side_p(p: Tensor) -> Tensor:
        return _length(-h, h, twins(p - right, p - left, -p * t), ((top - p * s) / c, (bottom - p * s) / c))

    def side_q(q: Tensor) -> Tensor:
        return _length(-w, w, twins(top - q, bottom - q, q * t), ((right + q * s) / c, (left + q * s) / c))

    of_a = right * side_u(right) * weight(right, w, -w) - left * side_u(left) * weight(-left, w, -w)
    of_a = of_a + top * side_v(top) * weight(top, h, -h) - bottom * side_v(bottom) * weight(-bottom, h, -h)
    of_b = w * (side_p(w) * weight(w, right, left) + side_p(-w) * weight(w, -left, -right))
    of_b = of_b + h * (side_q(h) * weight(h, top, bottom) + side_q(-h) * weight(h, -bottom, -top))
    return torch.where((half_width * half_height > 0) & (w * h > 0), (of_a + of_b) / 2, 0).clamp(min=0)


def formula(boxes_a: Tensor, boxes_b: Tensor, *, dimensions: int) -> Tensor:
    finite = (torch.isfinite(boxes_a) & torch.isfinite(boxes_b)).all(2)
    a, b = boxes_a.double(), boxes_b.double()
    area_a, area_b = (box[..., dimensions] * box[..., dimensions + 1] for box in (a, b))
    if dimensions == 3:
        flat = [0, 1, 3, 4, 6]
        upper = torch.minimum(a[..., 2] + a[..., 5] / 2, b[..., 2] + b[..., 5] / 2)
        lower = torch.maximum(a[..., 2] - a[..., 5] / 2, b[..., 2] - b[..., 5] / 2)
        shared = _shared_area(a[..., flat], b[..., flat]) * (upper - lower).clamp(min=0)
        area_a, area_b = area_a * a[..., 5], area_b * b[..., 5]
    else:
        shared = _shared_area(a, b)
    iou = shared / (area_a + area_b - shared)
    return torch.where(finite, iou, torch.nan).to(boxes_a.dtype)


def example(call: Call, *, dimensions: int, **_: Any) -> list[Tensor]:
    return [torch.rand(2, 3, 2 * dimensions + 1), torch.rand(2, 3, 2 * dimensions + 1)]
