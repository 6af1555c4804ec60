# SPDX-License-Identifier: Apache-2.0
"""Neighborhood attention: gathers the keys and values of each query's window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1, 2)


def _of_axis(values: Sequence[int], axis: int) -> int:
    return values[axis if len(values) > 1 else 0]


def _window(extent: int, kernel: int, dilation: int, causal: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Returns the positions of each window of an axis, [extent, kernel], and which of them exist."""
    position = torch.arange(extent, device=device)
    group, number = position % dilation, torch.div(position, dilation, rounding_mode="floor")
    taps = torch.arange(kernel, device=device)
    if causal:
        members = (number - (kernel - 1))[:, None] + taps
    else:
        of_group = torch.div(extent - group + (dilation - 1), dilation, rounding_mode="floor")
        members = torch.minimum((number - kernel // 2).clamp(min=0), of_group - kernel)[:, None] + taps
    return members.clamp(min=0) * dilation + group[:, None], members >= 0


def formula(
    query: Tensor, key: Tensor, value: Tensor, *, kernel_size: Sequence[int], dilation: Sequence[int],
    is_causal: Sequence[int], scale: float | Tensor,
) -> Tensor:  # fmt: skip
    axes = query.dim() - 3
    index = torch.zeros(1, 1, dtype=torch.int64, device=query.device)
    exists = torch.ones(1, 1, dtype=torch.bool, device=query.device)
    for axis in range(axes):
        extent = query.shape[1 + axis]
        of_axis = (_of_axis(values, axis) for values in (kernel_size, dilation, is_causal))
        at, inside = _window(extent, *of_axis, query.device)
        index = (index[:, None, :, None] * extent + at[None, :, None]).flatten(2).flatten(0, 1)
        exists = (exists[:, None, :, None] & inside[None, :, None]).flatten(2).flatten(0, 1)
    queries, keys, values = (t.flatten(1, axes) for t in (query, key, value))
    default = torch.as_tensor(query.shape[-1]).to(query.dtype).clamp(min=1).rsqrt()
    given = torch.as_tensor(scale).to(query.dtype)
    products = (queries[:, :, None] * keys[:, index]).sum(4) * torch.where(given > 0, given, default)
    weights = torch.softmax(products.masked_fill(~exists[:, :, None], -torch.inf), 2)
    sums = (weights[..., None] * values[:, index]).sum(2)
    return sums.reshape(*query.shape[:-1], value.shape[-1])


def example(call: Call, *, kernel_size: Sequence[int], dilation: Sequence[int], **_: Any) -> list[Tensor]:
    extents = [1 + _of_axis(kernel_size, a) * _of_axis(dilation, a) for a in range(call.rank(0) - 3)]
    return [torch.rand(2, *extents, 2, 4), torch.rand(2, *extents, 2, 4), torch.rand(2, *extents, 2, 3)]
