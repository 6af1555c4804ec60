# SPDX-License-Identifier: Apache-2.0
"""Maps and regions for the benchmarks of pooling."""

from typing import Any

import numpy as np
import torch
from benchmark import F32
from inputs import gaussian, uniform
from torch import Tensor

BINS: dict[str, Any] = {"output_height": 7, "output_width": 7}
POOLED: dict[str, Any] = {"pooled_height": 7, "pooled_width": 7}
PYRAMID: dict[str, Any] = {**BINS, "sampling_ratio": 2, "featmap_strides": [4.0, 8.0, 16.0, 32.0], "finest_scale": 56}
PYRAMID_OF_ROIS: dict[str, Any] = {
    **BINS,
    "sampling_ratio": 2,
    "featmap_strides": [1.0, 2.0, 4.0, 8.0],
    "finest_scale": 14,
}
SMALL_BINS: dict[str, Any] = {"output_height": 2, "output_width": 3, "spatial_scale": 0.7}
SMALL_PYRAMID: dict[str, Any] = {
    "output_height": 2,
    "output_width": 3,
    "featmap_strides": [2.0, 4.0],
    "finest_scale": 4,
}
# Of images: channels, height and width.
LARGE, MEDIUM = (256, 200, 304), (256, 100, 152)


def rois_of(count: int, width: int, height: int, scale: float, seed: int = 1) -> np.ndarray:
    """Returns boxes of 16 to 400 pixels inside the image, batch index 0."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(16, 400, (count, 2))
    corner = rng.uniform(0, 1, (count, 2)) * np.maximum([width / scale, height / scale] - size, 1)
    return np.concatenate([np.zeros((count, 1)), corner, corner + size], 1).astype(np.float32)


def rotated_of(rois: np.ndarray, seed: int) -> np.ndarray:
    """Returns boxes of the same centres and sizes, at random angles."""
    centre, size = (rois[:, 1:3] + rois[:, 3:]) / 2, rois[:, 3:] - rois[:, 1:3]
    angle = np.random.default_rng(seed).uniform(-3, 3, (len(rois), 1))
    return np.concatenate([rois[:, :1], centre, size, angle], 1).astype(np.float32)


def features(shape: tuple[int, int, int] = MEDIUM, dtype: torch.dtype = F32) -> Tensor:
    return torch.randn(1, *shape).to(dtype)


def pyramid(dtype: torch.dtype = F32) -> list[Tensor]:
    return [torch.randn(1, 256, 200 >> level, 304 >> level).to(dtype) for level in range(4)]


def boxes(
    shape: tuple[int, int, int] = MEDIUM,
    count: int = 512,
    rotated: bool = False,
    scale: float = 1,
    dtype: torch.dtype = F32,
) -> Tensor:
    """Returns boxes inside the image, whose sides are up to a third of the image's."""
    extent = torch.tensor([shape[2], shape[1]]) * scale
    low = torch.rand(count, 2) * extent * 0.7
    size = torch.rand(count, 2) * extent * 0.3 + 1
    image = torch.zeros(count, 1)
    parts = [image, low + size / 2, size, torch.rand(count, 1) * 3] if rotated else [image, low, low + size]
    return torch.cat(parts, 1).to(dtype)


def rois_over(n: int, rotated: bool = False) -> Tensor:
    """Returns rois of 4 to 40 pixels in an image of 256 x 256."""
    corner, size = uniform(n, 2, high=216), uniform(n, 2, low=4, high=40).flip(0)
    if rotated:
        return torch.cat([torch.zeros(n, 1), corner + 20, size, uniform(n, 1, low=-3, high=3)], 1)
    return torch.cat([torch.zeros(n, 1), corner, corner + size], 1)


def image_of_rois() -> Tensor:
    return gaussian(1, 16, 256, 256)


def pyramid_of_rois() -> list[Tensor]:
    return [gaussian(1, 16, 256 // 2**i, 256 // 2**i) for i in range(4)]


def small_rois(columns: int, extent: float = 6) -> Tensor:
    """Returns rois of two images of 6 x 5, partly outside."""
    rows = torch.rand(5, columns, generator=torch.Generator().manual_seed(columns)) * extent
    rows[:, 0] = torch.tensor([0.0, 1, 1, 0, 1])
    if columns == 5:
        rows[:, 3:] += rows[:, 1:3]
    rows[4, 1:3] -= 8
    return rows
