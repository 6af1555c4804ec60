"""`corr_sampler`, the compiled part of RAFT-Stereo: reads a correlation volume around the current disparities."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.compat._lookup import blend, spread, window

__all__ = ["backward", "forward"]


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


def forward(volume: Tensor, coords: Tensor, radius: int) -> tuple[Tensor]:
    """volume [N, H, W, W2], coords [N, 1 or 2, H, W] with x in channel 0 -> ([N, 2 * radius + 1, H, W],)."""
    _check("forward", volume, coords, radius)
    pixel, inside, fraction = window(coords[:, 0], radius, volume.shape[3])
    values = torch.where(inside, volume.gather(3, pixel), 0)
    return (blend(values, fraction[..., None].to(volume.dtype), 3).permute(0, 3, 1, 2).contiguous(),)


def backward(volume: Tensor, coords: Tensor, corr_grad: Tensor, radius: int) -> tuple[Tensor]:
    """Returns the gradient of the volume."""
    _check("backward", volume, coords, radius)
    pixel, inside, fraction = window(coords[:, 0], radius, volume.shape[3])
    grad = spread(corr_grad.permute(0, 2, 3, 1), fraction[..., None].to(corr_grad.dtype), 3)
    return (torch.zeros_like(volume).scatter_add_(3, pixel, torch.where(inside, grad, 0).to(volume.dtype)),)
