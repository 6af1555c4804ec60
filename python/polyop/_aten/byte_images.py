# SPDX-License-Identifier: Apache-2.0
"""Resizing of images of bytes (uint8), with PyTorch's results.

PyTorch resizes the rows, rounds to bytes, and then resizes the columns. Its weights are computed in float64 and rounded
to 16 bits: they have as many binary digits after the point as the largest of them allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from polyop._aten.resampling import (
    are_equal,
    cubic,
    either,
    filter_rows,
    lanczos,
    most_pixels,
    ratio,
    scaled,
    triangle,
    weighted_sums,
)
from polyop._aten.table import WRONG, extend, first_of
from polyop._base.extents import float32

_Filter = Callable[[Tensor], Tensor]
_MOST_DIGITS = 22


def _double(number: Any, device: torch.device) -> Tensor:
    """The exporter rounds numbers to float32: the result is the sum of numbers of that type."""
    create: Callable[[Any], Tensor] = partial(torch.scalar_tensor, dtype=torch.float64, device=device)
    if isinstance(number, torch.SymInt):
        return create(number)
    high = float32(number)
    middle = float32(number - high)
    return create(high) + create(middle) + create(number - high - middle)


def _interpolation_rows(inputs: Any, at: Tensor, filter: _Filter, taps: int) -> tuple[Tensor, Tensor]:
    """Returns `index` and `weights` of weighted_sums. Pixels outside of the image are the nearest ones of it: the first
    of equal pixels has the sum of their weights."""
    low = at.floor()
    steps = torch.arange(taps, device=at.device) - (taps // 2 - 1)
    weights = filter(steps - (at - low).unsqueeze(1))
    pixel = (low.to(torch.int64).unsqueeze(1) + steps).clamp(min=0).clamp(max=inputs - 1)
    equal = (pixel.unsqueeze(1) == pixel.unsqueeze(2)).to(weights.dtype)
    sums = (equal * weights.unsqueeze(1)).sum(2)
    first = torch.ones_like(pixel[:, :1], dtype=torch.bool)
    is_first = torch.cat([first, pixel[:, 1:] != pixel[:, :-1]], 1)
    return pixel, torch.where(is_first, sums, torch.zeros_like(sums))


def _in_fixed_point(self: Tensor, axis: int, index: Tensor, weights: Tensor) -> Tensor:
    powers = torch.pow(2.0, torch.arange(1, _MOST_DIGITS + 1, device=self.device).to(torch.float64))
    digits = (weights.max() * powers + 0.5 < 1 << 15).sum()
    unit = torch.pow(2.0, digits.to(torch.float64))
    scaled_up = weights * unit
    rounded = torch.where(weights < 0, scaled_up - 0.5, scaled_up + 0.5).to(torch.int32)
    sums = weighted_sums(self.to(torch.int32), axis, index, rounded)
    return (sums.to(torch.float64) / unit + 0.5).floor().clamp(0, 255).to(torch.uint8)


def _resized(
    self: Tensor, axis: int, outputs: Any, align_corners: bool, scale: float | None, filter: _Filter, taps: int,
    antialias: bool,
) -> Tensor:  # fmt: skip
    inputs = self.shape[axis]
    same = are_equal(inputs, outputs, self.device)
    if same is True:
        return self
    distance, pixels = ratio(inputs, outputs, align_corners, scale)
    step = _double(distance, self.device) / _double(pixels, self.device)
    at = torch.arange(outputs, device=self.device).to(torch.float64)
    if antialias:
        centre = either(same, at + 0.5, (at + 0.5) * step)
        most = most_pixels(distance / pixels, taps / 2)
        index, weights = filter_rows(inputs, centre, step.clamp(min=1.0), most, filter, taps / 2)
    else:
        at = either(same, at, at * step if align_corners else (at + 0.5) * step - 0.5)
        at = at.clamp(min=0) if taps == 2 else at
        index, weights = _interpolation_rows(inputs, at, filter, taps)
    return _in_fixed_point(self, axis, index, weights)


def _of_bytes(filter: _Filter, taps: int, antialias: bool) -> Callable[..., Any]:
    def call(self: Tensor, output_size: Sequence[Any] | None, align_corners: bool, *factors: Any, **given: Any) -> Any:
        if self.dtype != torch.uint8:
            return NotImplemented
        found: Any = [*factors, *given.values()]
        if found and isinstance(found[0], Sequence):
            (found,) = found
        scales = list(found) if len(found) == 2 else [None, None]
        if output_size is None:
            output_size = [scaled(size, scale) for size, scale in zip(self.shape[2:], scales, strict=True)]
        for axis in (-1, -2):
            self = _resized(self, axis, output_size[axis], align_corners, scales[axis], filter, taps, antialias)
        return self

    return call


_plain_cubic = partial(cubic, a=-0.75)
for _name, _filter, _taps, _antialias in (
    ("upsample_bilinear2d.vec", triangle, 2, False), ("upsample_bicubic2d.vec", _plain_cubic, 4, False),
    ("_upsample_bilinear2d_aa", triangle, 2, True), ("_upsample_bicubic2d_aa", cubic, 4, True),
    ("_upsample_lanczos2d_aa", lanczos, 6, True),
):  # fmt: skip
    extend(f"aten::{_name}", "bytes", partial(first_of, _of_bytes(_filter, _taps, _antialias)), without=WRONG)
