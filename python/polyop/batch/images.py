"""PNG and JPEG images, and conversions between pixels and tensors, equal to the program's (cli/base/image.h)."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from PIL import Image, ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile

from polyop.batch.errors import BatchError, SampleError
from polyop.batch.interface import Tensor, cast

_MAX_PIXELS = 1 << 28
_LUMA = np.array([0.299, 0.587, 0.114])  # ITU-R BT.601
_SRGB_GAMMA = 0.45455
_COMPRESSION = 1  # of PNG: ten times as fast as the default 6, with slightly larger files


@dataclass(frozen=True)
class Format:
    """The layout, channels and range of an image in a tensor."""

    layout: str = "NCHW"  # or "NHWC"
    color: str = "RGB"  # or "BGR", "GRAY"
    low: float = 0  # the values of black and white
    high: float = 1


@dataclass(frozen=True)
class ImageOptions:
    """Options that override the model's image format; None keeps the model's."""

    layout: str | None = None
    range: tuple[float, float] | None = None
    color: str | None = None

    def __post_init__(self) -> None:
        if self.layout not in (None, "NCHW", "NHWC"):
            raise BatchError(f"layout: expected NCHW or NHWC, got '{self.layout}'")
        if self.color not in (None, "RGB", "BGR", "GRAY"):
            raise BatchError(f"color: expected RGB, BGR or GRAY, got '{self.color}'")
        if self.range is not None and (self.range[0] == self.range[1] or not all(map(math.isfinite, self.range))):
            raise BatchError(f"range: expected two different finite values, for black and white, got {self.range}")

    def over(self, result: Format) -> Format:
        low, high = self.range or (result.low, result.high)
        return replace(
            result, layout=self.layout or result.layout, color=self.color or result.color, low=low, high=high
        )


def format_of(tensor: Tensor, metadata: Mapping[str, str], options: ImageOptions) -> Format:
    """Returns a tensor's image format: from the options, else the model's metadata, else the tensor's shape and
    type."""
    extents = (None,) * 3 + tensor.shape
    layout = "NHWC" if extents[-1] in (1, 3) and extents[-3] not in (1, 3) else "NCHW"
    color = "GRAY" if extents[-1 if layout == "NHWC" else -3] == 1 else "RGB"
    result = Format(layout, color, 0, 255 if tensor.dtype == np.uint8 else 1)
    try:
        noted = json.loads(metadata.get(f"polyop.image.{tensor.name}", "{}"))
        ends = noted.get("range")
        noted = ImageOptions(noted.get("layout"), tuple(ends) if ends else None, noted.get("color"))
    except (ValueError, AttributeError, TypeError, BatchError):
        noted = ImageOptions()
    return options.over(noted.over(result))


def read(data: bytes, name: str) -> np.ndarray:
    """Decodes a PNG or JPEG file to 8-bit RGB, [H, W, 3], with transparent pixels on white.

    Raises SampleError if the file is damaged or of another kind.
    """
    try:
        with _open(data, name) as image:
            if image.width * image.height > _MAX_PIXELS:
                raise SampleError(f"'{name}': expected at most {_MAX_PIXELS} pixels, got {image.width}x{image.height}")
            if image.mode.startswith("I") or (image.format == "PNG" and data[24:25] == b"\x10"):
                raise SampleError(f"'{name}': expected 8 bits per channel, got 16: convert it, or pass it as .npy")
            if abs(image.info.get("gamma", _SRGB_GAMMA) / _SRGB_GAMMA - 1) > 0.05 and "srgb" not in image.info:
                raise SampleError(f"'{name}': expected sRGB, got gamma {image.info['gamma']}: convert it to sRGB")
            if image.has_transparency_data:
                return _on_white(np.asarray(image.convert("RGBA")))
            return np.asarray(image.convert("RGB"))
    except (OSError, SyntaxError, ValueError) as error:
        if isinstance(error, SampleError):
            raise
        raise SampleError(f"'{name}' is not a readable image: {error}") from None


def _open(data: bytes, name: str) -> ImageFile.ImageFile:
    """Opens an image without Pillow's limit of pixels: `read` has its own, and Pillow's is a setting of the process."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return PngImageFile(io.BytesIO(data))
    if data.startswith(b"\xff\xd8\xff"):
        return JpegImageFile(io.BytesIO(data))
    raise SampleError(f"'{name}' is not a readable image: expected PNG or JPEG")


def _on_white(pixels: np.ndarray) -> np.ndarray:
    """Composes on white in 8-bit linear light, like libpng."""
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
    """Returns pixels [H, W, 3] as a tensor [1, C, H, W] or [1, H, W, C]."""
    if format.color == "GRAY":
        gray = pixels[..., 0] * _LUMA[0] + pixels[..., 1] * _LUMA[1] + pixels[..., 2] * _LUMA[2]
        result = cast(format.low + gray * ((format.high - format.low) / 255), dtype)[..., None]
    else:
        result = _values(format.low, format.high, dtype)[pixels[..., ::-1] if format.color == "BGR" else pixels]
    return np.ascontiguousarray(result if format.layout == "NHWC" else result.transpose(2, 0, 1))[None]


def from_tensor(array: np.ndarray, format: Format, name: str) -> np.ndarray:
    """Returns the pixels of a tensor [1, C, H, W], [C, H, W], [1, H, W, C], [H, W, C] or [H, W]. Clips values to black
    and white.
    """
    result = array[0] if array.ndim == 4 and array.shape[0] == 1 else array
    if result.ndim == 2:
        result = result[..., None]
    elif format.layout == "NCHW" and result.ndim == 3:
        result = result.transpose(1, 2, 0)
    if result.ndim != 3 or result.shape[2] not in (1, 3) or 0 in result.shape:
        raise SampleError(f"output '{name}': expected one image, got shape {list(array.shape)}")
    scaled = result.astype(np.float64)
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
    """Returns the content of a PNG file, or of a JPEG file of quality 95."""
    buffer = io.BytesIO()
    image = Image.fromarray(np.ascontiguousarray(pixels))
    if extension == "png":
        image.save(buffer, "PNG", compress_level=_COMPRESSION)
    else:
        image.save(buffer, "JPEG", quality=95, subsampling=0)
    return buffer.getvalue()
