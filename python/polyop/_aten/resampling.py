"""Sampling and resizing of images and volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyop._aten.table import SLOW, decomposes

aten = torch.ops.aten
_SAMPLED = frozenset((torch.float32, torch.float16, torch.bfloat16))


@decomposes("aten::grid_sampler_3d", nodes=("grid_sampler",))
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:  # fmt: skip
    dtype = input.dtype if input.dtype in _SAMPLED else torch.float32
    result = torch.ops.polyop.grid_sampler.default(
        input.to(dtype), grid.to(dtype), interpolation_mode=("bilinear", "nearest", "bicubic")[interpolation_mode],
        padding_mode=("zeros", "border", "reflection")[padding_mode], align_corners=int(align_corners),
    )  # fmt: skip
    return result.to(input.dtype)


def _axis(size: int, like: Tensor, align_corners: bool) -> Tensor:
    """Returns the coordinates of an axis of affine_grid: -1 to 1."""
    at = torch.arange(size, device=like.device).to(like.dtype)
    if align_corners:
        return at * (2 / (size - 1)) - 1 if size > 1 else at * 0
    return (at * 2 + 1) / size - 1


@decomposes("aten::affine_grid_generator", without=SLOW)
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Any:
    extents = list(size[2:])
    axes = len(extents)
    columns = []
    for i in reversed(range(axes)):
        shape = [1] * axes
        shape[i] = -1
        columns.append(_axis(extents[i], theta, align_corners).reshape(shape).expand(extents))
    columns.append(torch.ones(extents, dtype=theta.dtype, device=theta.device))
    base = torch.stack(columns, -1).reshape(-1, axes + 1)
    return torch.matmul(base, theta.mT).reshape([theta.shape[0], *extents, axes])
