"""The photos that SRCNN is trained and judged on: all lie inside the scikit-image wheel."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import skimage
import torch
import torch.nn.functional as F
from PIL import Image

TRAINING = ("astronaut.png", "coffee.png", "rocket.jpg", "motorcycle_left.png", "hubble_deep_field.jpg", "camera.png")
HELD_OUT = "chelsea.png"
SCALES = (2.0, 2.5, 3.0)


def load(name: str) -> torch.Tensor:
    """A picture as float32 [1, 3, H, W] in 0..1, cropped so that every scale divides its extents."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pixels = np.asarray(Image.open(Path(skimage.__file__).parent / "data" / name).convert("RGB"))
    height, width = (extent // 30 * 30 for extent in pixels.shape[:2])
    return torch.from_numpy(pixels[:height, :width].copy()).permute(2, 0, 1)[None].float() / 255


def reduce(picture: torch.Tensor, scale: float) -> torch.Tensor:
    """The low-resolution picture: antialiased bicubic reduction, rounded to 8 bits as a file would be."""
    size = [round(extent / scale) for extent in picture.shape[-2:]]
    small = F.interpolate(picture, size=size, mode="bicubic", antialias=True, align_corners=False)
    return (small.clamp(0, 1) * 255).round() / 255


def enlarge(picture: torch.Tensor, scale: float) -> torch.Tensor:
    """Bicubic enlargement (a = -0.75), the rival and SRCNN's own first step."""
    return F.interpolate(picture, scale_factor=scale, mode="bicubic", align_corners=False)


def luminance(picture: torch.Tensor) -> torch.Tensor:
    """ITU-R BT.601 luma in 0..1."""
    weights = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)
    return (picture.clamp(0, 1) * weights).sum(1)


def psnr(got: torch.Tensor, want: torch.Tensor, border: int) -> float:
    """Peak signal-to-noise ratio in dB on luminance, without `border` pixels at each edge."""
    inside = (..., slice(border, -border), slice(border, -border))
    error = luminance(got)[inside] - luminance(want)[inside]
    return float(-10 * torch.log10((error**2).mean()))
