# SPDX-License-Identifier: Apache-2.0
"""Deformable convolution: bilinear samples of each point of the filter, then a matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyop.formulas.bilinear_formula import bilinear


def _pair(values: Sequence[int]) -> Sequence[int]:
    """Repeat a single value for both axes."""
    return values if len(values) == 2 else (values[0], values[0])


def deform_conv(
    input: Tensor, offset: Tensor, mask: Tensor | None, weight: Tensor, *, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], groups: int, deform_groups: int,
) -> Tensor:  # fmt: skip
    number, channels, height, width = input.shape
    filters, _, kh, kw = weight.shape
    oh, ow = offset.shape[2:]
    stride, padding, dilation = _pair(stride), _pair(padding), _pair(dilation)
    points, parts = kh * kw, number * deform_groups

    def count(numbers: int) -> Tensor:
        return torch.arange(numbers, device=input.device)

    shift = offset.reshape(number, deform_groups, points, 2, oh, ow)
    ky = (count(kh) * dilation[0]).reshape(kh, 1).expand(kh, kw).reshape(points, 1, 1)
    kx = (count(kw) * dilation[1]).reshape(1, kw).expand(kh, kw).reshape(points, 1, 1)
    y = count(oh).reshape(oh, 1) * stride[0] - padding[0] + ky + shift[:, :, :, 0]
    x = count(ow) * stride[1] - padding[1] + kx + shift[:, :, :, 1]
    images = input.reshape(parts, channels // deform_groups, height, width)
    index = count(parts).reshape(number, deform_groups, 1, 1, 1).expand_as(y)
    samples = bilinear(images, index, y, x, clamp=False)
    if mask is not None:
        samples = samples * mask.reshape(number, deform_groups, points, oh, ow, 1)
    rows = samples.permute(0, 1, 5, 2, 3, 4).reshape(number, groups, channels // groups * points, oh * ow)
    filters_of = weight.reshape(groups, filters // groups, channels // groups * points)
    return (filters_of @ rows).reshape(number, filters, oh, ow)


def example_of(
    stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int, deform_groups: int
) -> dict[str, Tensor]:
    """Return tensors by name whose shapes fit these attributes."""
    channels, filters = 2 * groups * deform_groups, 2 * groups
    stride, padding, dilation = _pair(stride), _pair(padding), _pair(dilation)
    kernel, size = (3, 2), (2 * dilation[0] + 5, dilation[1] + 6)
    oh, ow = ((size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2))
    points = deform_groups * kernel[0] * kernel[1]
    return {
        "input": torch.rand(2, channels, *size),
        "offset": torch.rand(2, 2 * points, oh, ow),
        "mask": torch.rand(2, points, oh, ow),
        "weight": torch.rand(filters, channels // groups, *kernel),
        "bias": torch.rand(filters),
    }


def example_with_sides(pads: Sequence[int], **rule: Any) -> dict[str, Tensor]:
    """Return tensors as `example_of`, for a padding of each side: top, left, bottom, right, or one value for all."""
    tensors = example_of(**rule)
    sides = pads if len(pads) == 4 else [pads[0]] * 4
    outputs = []
    for axis in range(2):
        stride, dilation = (_pair(rule[name])[axis] for name in ("stride", "dilation"))
        reach = dilation * (tensors["weight"].shape[2 + axis] - 1) + 1
        extent = tensors["input"].shape[2 + axis] + sides[axis] + sides[2 + axis]
        outputs.append((extent - reach) // stride + 1)
    resized = {name: torch.rand(2, tensors[name].shape[1], *outputs) for name in ("offset", "mask")}
    return {**tensors, **resized}
