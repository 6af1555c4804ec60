# SPDX-License-Identifier: Apache-2.0
"""`corr_sampler`, the compiled part of RAFT-Stereo: reads a correlation volume around the current disparities."""

from __future__ import annotations

import torch
from torch import Tensor

import polyop.functional  # noqa: F401 - registers the operators

__all__ = ["backward", "forward"]

_ops = torch.ops.polyop


def _check(function: str, volume: Tensor, coords: Tensor, radius: int) -> None:
    if volume.dim() != 4:
        raise ValueError(f"corr_sampler.{function}: volume: expected shape [N, H, W, W2], got {list(volume.shape)}")
    n, h, w, _ = volume.shape
    if coords.dim() != 4 or (coords.shape[0], *coords.shape[2:]) != (n, h, w) or coords.shape[1] < 1:
        raise ValueError(
            f"corr_sampler.{function}: coords: expected shape [{n}, 1 or 2, {h}, {w}], got {list(coords.shape)}"
        )
    if radius < 0:
        raise ValueError(f"corr_sampler.{function}: radius: expected at least 0, got {radius}")


def _lines(volume: Tensor, coords: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the volume as maps of one row, and the positions in it."""
    x = coords[:, :1].to(torch.float64 if volume.dtype == torch.float64 else torch.float32)
    return volume.unsqueeze(3), torch.cat([x, torch.zeros_like(x)], 1)


def forward(volume: Tensor, coords: Tensor, radius: int) -> tuple[Tensor]:
    """volume [N, H, W, W2], coords [N, 1 or 2, H, W] with x in channel 0 -> ([N, 2 * radius + 1, H, W],)."""
    _check("forward", volume, coords, radius)
    return (_ops.correlation_lookup(*_lines(volume, coords), radius=[0, radius]),)


def backward(volume: Tensor, coords: Tensor, corr_grad: Tensor, radius: int) -> tuple[Tensor]:
    """Returns the gradient of the volume."""
    _check("backward", volume, coords, radius)
    grad = _ops.correlation_lookup_backward(corr_grad.to(volume.dtype), *_lines(volume, coords), radius=[0, radius])
    return (grad.squeeze(3),)
