# SPDX-License-Identifier: Apache-2.0
"""The photos for training and evaluation of SRCNN. All of them are in the scikit-image wheel."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import skimage
from PIL import Image

TRAINING = ("astronaut.png", "coffee.png", "rocket.jpg", "motorcycle_left.png", "hubble_deep_field.jpg", "camera.png")
HELD_OUT = "chelsea.png"
SCALES = (2.0, 2.5, 3.0)


def load(name: str) -> np.ndarray:
    """Returns an image as float32 [1, 3, H, W] in 0..1, cropped so that every scale divides its extents."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pixels = np.asarray(Image.open(Path(skimage.__file__).parent / "data" / name).convert("RGB"))
    height, width = (extent // 30 * 30 for extent in pixels.shape[:2])
    return from_pixels(pixels[:height, :width])


def from_pixels(pixels: np.ndarray) -> np.ndarray:
    """Returns bytes [H, W, 3] as float32 [1, 3, H, W] in 0..1."""
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], np.float32) / np.float32(255)


def round_to_bytes(image: np.ndarray) -> np.ndarray:
    """Rounds as a file of 8 bits would."""
    return np.round(image.clip(0, 1) * 255) / np.float32(255)


def reduce(image: np.ndarray, scale: float) -> np.ndarray:
    """Returns the low-resolution image: antialiased bicubic reduction, rounded to 8 bits as in a file."""
    rows, columns = (_reduction(extent, round(extent / scale)) for extent in image.shape[-2:])
    return round_to_bytes(rows @ image @ columns.T)


def enlarge(image: np.ndarray, scale: float) -> np.ndarray:
    """Bicubic enlargement (a = -0.75): the rival, and SRCNN's own first step."""
    rows, columns = (_enlargement(extent, scale) for extent in image.shape[-2:])
    return rows @ image @ columns.T


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """Keys' cubic convolution kernel."""
    x = np.abs(x)
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, a * (((x - 5) * x + 8) * x - 4)
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _reduction(extent: int, smaller: int) -> np.ndarray:
    """Returns the matrix [smaller, extent] of PyTorch's antialiased bicubic: the kernel (a = -0.5) is as wide as the
    reduction.
    """
    ratio = extent / smaller
    centres = (np.arange(smaller)[:, None] + 0.5) * ratio
    weights = _cubic((np.arange(extent) + 0.5 - centres) / ratio, -0.5)
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)


def _enlargement(extent: int, scale: float) -> np.ndarray:
    """Returns the matrix [extent * scale, extent] of PyTorch's bicubic: outside the image its edge is repeated."""
    larger = int(extent * scale)
    at = (np.arange(larger) + 0.5) / scale - 0.5
    matrix = np.zeros((larger, extent))
    for tap in range(-1, 3):
        source = np.floor(at) + tap
        np.add.at(matrix, (np.arange(larger), source.clip(0, extent - 1).astype(int)), _cubic(at - source, -0.75))
    return matrix.astype(np.float32)


def luminance(image: np.ndarray) -> np.ndarray:
    """Returns the ITU-R BT.601 luma in 0..1."""
    return np.einsum("nchw,c->nhw", image.clip(0, 1), np.float32([0.299, 0.587, 0.114]))


def psnr(got: np.ndarray, want: np.ndarray, border: int) -> float:
    """Returns the peak signal-to-noise ratio in dB on luminance, without `border` pixels at each edge."""
    inside = (..., slice(border, -border), slice(border, -border))
    error = luminance(got)[inside] - luminance(want)[inside]
    return float(-10 * np.log10((error**2).mean()))
