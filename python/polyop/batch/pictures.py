"""PNG and JPEG pictures, and the way between pixels and tensors: the same as the program's (cli/base/image.h)."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from PIL import Image, UnidentifiedImageError

from polyop.batch.errors import BatchError, SampleError
from polyop.batch.interface import Tensor, cast

EXTENSIONS = (".png", ".jpg", ".jpeg")
_MOST_PIXELS = 1 << 28
_LUMA = np.array([0.299, 0.587, 0.114])  # ITU-R BT.601
_SRGB_GAMMA = 0.45455
_COMPRESSION = 1  # of PNG: a tenth of the time of the usual 6, and files some tenths larger

Image.MAX_IMAGE_PIXELS = None  # `read` has its own limit, and raises where Pillow warns


@dataclass(frozen=True)
class Format:
    """How a tensor holds a picture."""

    layout: str = "NCHW"  # or "NHWC"
    color: str = "RGB"  # or "BGR", "GRAY"
    low: float = 0  # the values of black and white
    high: float = 1


@dataclass(frozen=True)
class PictureOptions:
    """What is said of pictures beside what the model says; None leaves it to the model."""

    layout: str | None = None
    range: tuple[float, float] | None = None
    color: str | None = None

    def __post_init__(self) -> None:
        if self.layout not in (None, "NCHW", "NHWC"):
            raise BatchError(f"the layout '{self.layout}' is neither NCHW nor NHWC")
        if self.color not in (None, "RGB", "BGR", "GRAY"):
            raise BatchError(f"the color '{self.color}' is none of RGB, BGR, GRAY")
        if self.range is not None and (self.range[0] == self.range[1] or not all(map(math.isfinite, self.range))):
            raise BatchError(f"the range {self.range} is no pair of two values, of black and white")

    def over(self, made: Format) -> Format:
        low, high = self.range or (made.low, made.high)
        return replace(made, layout=self.layout or made.layout, color=self.color or made.color, low=low, high=high)


def format_of(tensor: Tensor, metadata: Mapping[str, str], options: PictureOptions) -> Format:
    """By the options, else the model's metadata, else the tensor's shape and type."""
    extents = (None,) * 3 + tensor.shape
    layout = "NHWC" if extents[-1] in (1, 3) and extents[-3] not in (1, 3) else "NCHW"
    color = "GRAY" if extents[-1 if layout == "NHWC" else -3] == 1 else "RGB"
    made = Format(layout, color, 0, 255 if tensor.dtype == np.uint8 else 1)
    try:
        noted = json.loads(metadata.get(f"polyop.image.{tensor.name}", "{}"))
        ends = noted.get("range")
        noted = PictureOptions(noted.get("layout"), tuple(ends) if ends else None, noted.get("color"))
    except (ValueError, AttributeError, TypeError, BatchError):
        noted = PictureOptions()
    return options.over(noted.over(made))


def read(data: bytes, name: str) -> np.ndarray:
    """8-bit RGB, [H, W, 3]; behind transparent pixels is white. Raises SampleError for what is damaged or of another kind."""
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
            if image.width * image.height > _MOST_PIXELS:
                raise SampleError(f"'{name}' claims {image.width}x{image.height} pixels")
            if image.mode.startswith("I") or (image.format == "PNG" and data[24:25] == b"\x10"):
                raise SampleError(f"'{name}' has 16 bits a channel: convert it to 8, or give it as .npy")
            if abs(image.info.get("gamma", _SRGB_GAMMA) / _SRGB_GAMMA - 1) > 0.05 and "srgb" not in image.info:
                raise SampleError(f"'{name}' has the gamma {image.info['gamma']}: convert it to sRGB")
            if image.has_transparency_data:
                return _on_white(np.asarray(image.convert("RGBA")))
            return np.asarray(image.convert("RGB"))
    except UnidentifiedImageError:
        raise SampleError(f"'{name}' is not a readable picture: its content is neither PNG nor JPEG") from None
    except (OSError, SyntaxError, ValueError) as error:
        if isinstance(error, SampleError):
            raise
        raise SampleError(f"'{name}' is not a readable picture: {error}") from None


def _on_white(pixels: np.ndarray) -> np.ndarray:
    """In linear light of 8 bits, as libpng composes."""
    level = np.arange(256) / 255
    linear, encoded = (
        (np.floor(255 * level**gamma + 0.5)).astype(np.uint32) for gamma in (1 / _SRGB_GAMMA, _SRGB_GAMMA)
    )
    alpha = pixels[..., 3:].astype(np.uint32)
    mixed = linear[pixels[..., :3]] * alpha + 255 * (255 - alpha) + 128
    mixed = encoded[(mixed + (mixed >> 8)) >> 8]
    return np.where(alpha == 255, pixels[..., :3], np.where(alpha == 0, 255, mixed)).astype(np.uint8)


@lru_cache(maxsize=8)
def _values(low: float, high: float, dtype: np.dtype) -> np.ndarray:
    return cast(low + np.arange(256) * ((high - low) / 255), dtype)


def to_tensor(pixels: np.ndarray, format: Format, dtype: np.dtype) -> np.ndarray:
    """[1, C, H, W] or [1, H, W, C] of pixels [H, W, 3]."""
    if format.color == "GRAY":
        gray = pixels[..., 0] * _LUMA[0] + pixels[..., 1] * _LUMA[1] + pixels[..., 2] * _LUMA[2]
        made = cast(format.low + gray * ((format.high - format.low) / 255), dtype)[..., None]
    else:
        made = _values(format.low, format.high, dtype)[pixels[..., ::-1] if format.color == "BGR" else pixels]
    return np.ascontiguousarray(made if format.layout == "NHWC" else made.transpose(2, 0, 1))[None]


def from_tensor(array: np.ndarray, format: Format, name: str) -> np.ndarray:
    """Pixels of [1, C, H, W], [C, H, W], [1, H, W, C], [H, W, C] or [H, W]; values beyond black and white are clipped."""
    made = array[0] if array.ndim == 4 and array.shape[0] == 1 else array
    if made.ndim == 2:
        made = made[..., None]
    elif format.layout == "NCHW" and made.ndim == 3:
        made = made.transpose(1, 2, 0)
    if made.ndim != 3 or made.shape[2] not in (1, 3) or 0 in made.shape:
        raise SampleError(f"output '{name}' of shape {list(array.shape)} is not one picture")
    scaled = made.astype(np.float64)
    if format.low:
        scaled -= format.low
    scaled *= 255 / (format.high - format.low)
    np.clip(scaled, 0, 255, out=scaled)
    scaled += 0.5
    np.nan_to_num(scaled, copy=False, nan=0)
    pixels = scaled.astype(np.uint8)
    if pixels.shape[2] == 1:
        return np.repeat(pixels, 3, axis=2)
    return pixels[..., ::-1] if format.color == "BGR" else pixels


def encode(pixels: np.ndarray, extension: str) -> bytes:
    """A PNG file, or JPEG of quality 95."""
    buffer = io.BytesIO()
    image = Image.fromarray(np.ascontiguousarray(pixels))
    if extension == "png":
        image.save(buffer, "PNG", compress_level=_COMPRESSION)
    else:
        image.save(buffer, "JPEG", quality=95, subsampling=0)
    return buffer.getvalue()
