# SPDX-License-Identifier: Apache-2.0
"""Images, and conversions between pixels and tensors.

`read` is the reader of all commands. The program (cli/base/image.h) decodes the most frequent kinds itself, with equal
results, and converts to tensors in the same way.
"""

from __future__ import annotations

import ctypes
import io
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from PIL import Image, ImageFile, features
from PIL.BmpImagePlugin import BmpImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from polyop._arrays import calls
from polyop.batch.errors import BatchError, SampleError, UnreadableError
from polyop.batch.interface import Tensor, cast
from polyop.batch.memory import Memory

_MAX_PIXELS = 1 << 28
_MIN_EXTENT = 16  # of results that nothing marks as images: smaller ones are boxes and scores
_ORIENTATION = 0x0112  # in EXIF
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
    is_stated: bool = False  # by the model's metadata, or by an option

    def size_of(self, extents: Sequence[int | str | None]) -> tuple[int | str | None, int | str | None]:
        """Returns the height and the width of a tensor's shape, [.., C, H, W] or [.., H, W, C]."""
        padded = (None, None, None, *extents)
        height, width = padded[-2:] if self.layout == "NCHW" else padded[-3:-1]
        return height, width


Size = tuple[int, int] | str
"""(height, width), or "model": the extents of the model's input."""


@dataclass(frozen=True)
class ImageOptions:
    """Options of images. layout, range and color override the model's image format; None keeps the model's.

    resize, letterbox: the size to scale an input image to, without or with its aspect ratio.
    mean, std: subtracted from an input's values and divided by; one number, or one per channel of the tensor.
    """

    layout: str | None = None
    range: tuple[float, float] | None = None
    color: str | None = None
    resize: Size | None = None
    letterbox: Size | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.resize is not None and self.letterbox is not None:
            raise BatchError("resize, letterbox: expected one of them, got both")
        for name in ("resize", "letterbox"):
            size = getattr(self, name)
            if not (
                size is None or size == "model" or (not isinstance(size, str) and len(size) == 2 and min(size) > 0)
            ):
                raise BatchError(f"{name}: expected a height and a width, or 'model', got {size!r}")
        for name in ("mean", "std"):
            values = getattr(self, name)
            if values is not None and (len(values) not in (1, 3) or not all(map(math.isfinite, values))):
                raise BatchError(f"{name}: expected 1 or 3 finite numbers, got {values}")
        if self.std is not None and 0 in self.std:
            raise BatchError(f"std: expected numbers other than 0, got {self.std}")
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
    key = f"polyop.image.{tensor.name}"
    stated = key in metadata or options.layout is not None
    result = Format(layout, color, 0, 255 if tensor.dtype == np.uint8 else 1, stated)
    try:
        noted = json.loads(metadata.get(key, "{}"))
        ends = noted.get("range")
        noted = ImageOptions(noted.get("layout"), tuple(ends) if ends else None, noted.get("color"))
    except (ValueError, AttributeError, TypeError, BatchError):
        noted = ImageOptions()
    return options.over(noted.over(result))


def read(data: bytes, name: str, memory: Memory | None = None) -> np.ndarray:
    """Decodes a PNG, JPEG, BMP, WebP or TIFF file to 8-bit RGB, [H, W, 3]: the first image of several.

    Applies the EXIF orientation. Transparent pixels are on white. Of 16 bits, keeps the higher 8. Converts CMYK, and
    PNG files with a gamma. Raises UnreadableError if the file is damaged, of another kind, or its pixels exceed
    `memory`.
    """
    try:
        with _open(data, name) as image:
            if image.width * image.height > _MAX_PIXELS:
                raise UnreadableError(
                    f"'{name}': expected at most {_MAX_PIXELS} pixels, got {image.width}x{image.height}"
                )
            (memory or Memory()).take(name, image.width * image.height * 3, len(data))
            pixels = _pixels(image, name)
            orientation = 1
            with suppress(Exception):  # damaged EXIF data has no orientation; Pillow raises errors of many types
                orientation = image.getexif().get(_ORIENTATION, 1)
            return _upright(pixels, orientation)
    except (OSError, SyntaxError, ValueError) as error:
        if isinstance(error, UnreadableError):
            raise
        raise UnreadableError(f"'{name}' is not a readable image: {error}") from None


def _open(data: bytes, name: str) -> ImageFile.ImageFile:
    """Opens an image without Pillow's limit of pixels: `read` has its own, and Pillow's is a setting of the process."""
    file = io.BytesIO(data)
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return PngImageFile(file)
    if data.startswith(b"\xff\xd8\xff"):
        return JpegImageFile(file)
    if data.startswith(b"BM"):
        return BmpImageFile(file)
    if data.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")):
        return TiffImageFile(file)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        if not features.check("webp"):
            raise UnreadableError(
                f"'{name}': expected PNG, JPEG, BMP or TIFF, got WebP, which this Pillow was built without"
            )
        return WebPImageFile(file)
    raise UnreadableError(f"'{name}' is not a readable image: expected PNG, JPEG, BMP, WebP or TIFF")


def _pixels(image: ImageFile.ImageFile, name: str) -> np.ndarray:
    """Returns the pixels as they are stored, in 8-bit RGB."""
    is_png = image.format == "PNG"
    if image.mode == "F" or (image.mode.startswith("I") and not is_png and not image.mode.startswith("I;16")):
        raise UnreadableError(f"'{name}': expected 8 or 16 bits per channel, got other numbers: pass it as .npy")
    image.load()
    transparent = image.info.get("transparency")
    if image.mode.startswith("I"):  # one channel of 16 bits
        values = np.asarray(image)
        gray = (values >> 8).astype(np.uint8)
        alpha = np.where(values == transparent, 0, 255).astype(np.uint8)
        pixels = np.stack([gray, gray, gray, alpha], axis=-1)
    elif image.has_transparency_data:
        if isinstance(transparent, tuple) and max(transparent) > 255:  # of 16 bits, where the pixels have 8
            image.info["transparency"] = tuple(value >> 8 for value in transparent)
        pixels = np.asarray(image.convert("RGBA"))
    else:
        pixels = np.asarray(image.convert("RGB"))
    gamma = image.info.get("gamma", _SRGB_GAMMA) if is_png and "srgb" not in image.info else _SRGB_GAMMA
    if gamma > 0 and abs(gamma / _SRGB_GAMMA - 1) > 0.05:
        table = np.floor(255 * (np.arange(256) / 255) ** (_SRGB_GAMMA / gamma) + 0.5).astype(np.uint8)
        pixels = np.concatenate([table[pixels[..., :3]], pixels[..., 3:]], axis=-1)
    return _on_white(pixels) if pixels.shape[2] == 4 else pixels


def _upright(pixels: np.ndarray, orientation: object) -> np.ndarray:
    """Returns the image as a viewer shows it. `orientation` is EXIF's, 1 to 8; others change nothing."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.transpose(1, 0, 2)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return pixels


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


def resized(pixels: np.ndarray, height: int, width: int, letterbox: bool = False) -> np.ndarray:
    """Returns the 8-bit pixels [H, W, 3] with other extents, as polyop_resize in adapters/c/polyop.h."""
    pixels = np.ascontiguousarray(pixels)
    result = np.empty((height, width, 3), np.uint8)
    error = _resize()(pixels.ctypes.data, *pixels.shape[:2], result.ctypes.data, height, width, letterbox)
    if error is not None:
        raise BatchError(error.decode())
    return result


@cache
def _resize() -> Any:
    function = calls.library().polyop_resize
    pointer, extent = ctypes.c_void_p, ctypes.c_int64
    function.restype = ctypes.c_char_p
    function.argtypes = (pointer, extent, extent, pointer, extent, extent, ctypes.c_int32)
    return function


@lru_cache(maxsize=8)
def _values(low: float, high: float, dtype: np.dtype) -> np.ndarray:
    return cast(low + np.arange(256) * ((high - low) / 255), dtype)


def to_input(pixels: np.ndarray, tensor: Tensor, format: Format, options: ImageOptions, source: str) -> np.ndarray:
    """Returns pixels [H, W, 3] as a value of the input, scaled and normalized as the options say. Raises SampleError if
    its shape does not fit. `source` names it."""
    if (size := options.resize or options.letterbox) is not None:
        if isinstance(size, str):
            size = _fixed_size(tensor, format)
        pixels = resized(pixels, *size, letterbox=options.letterbox is not None)
    array = to_tensor(pixels, format, tensor.dtype, options.mean or (0.0,), options.std or (1.0,))
    if not tensor.fits(array.shape) and len(tensor.shape) == 4:
        raise SampleError(
            f"input '{tensor.name}': expected {tensor}, got {list(array.shape)} from {source}",
            "--resize model, or --letterbox model, which keeps the aspect ratio",
        )
    return tensor.take(array, source)


def _fixed_size(tensor: Tensor, format: Format) -> tuple[int, int]:
    height, width = format.size_of(tensor.shape)
    if not isinstance(height, int) or not isinstance(width, int) or height * width > _MAX_PIXELS:
        raise SampleError(
            f"input '{tensor.name}': expected a fixed height and width to resize to, got {tensor}",
            "give the size: HEIGHTxWIDTH instead of model",
        )
    return height, width


def to_tensor(
    pixels: np.ndarray, format: Format, dtype: np.dtype, mean: Sequence[float] = (0.0,), std: Sequence[float] = (1.0,)
) -> np.ndarray:
    """Returns pixels [H, W, 3] as a tensor [1, C, H, W] or [1, H, W, C], with values (value - mean) / std."""
    if tuple(mean) != (0.0,) or tuple(std) != (1.0,):
        plain = to_tensor(pixels, replace(format, layout="NHWC"), np.dtype(np.float64))[0]
        result = cast((plain - np.asarray(mean)) / np.asarray(std), dtype)
        if result.shape != plain.shape:
            raise SampleError(f"mean, std: expected {plain.shape[2]} number, as the image has channels, got 3")
    elif format.color == "GRAY":
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
    least = 1 if format.is_stated else _MIN_EXTENT
    if result.ndim != 3 or result.shape[2] not in (1, 3) or min(result.shape[:2]) < least:
        raise SampleError(
            f"output '{name}': expected one image, got shape {list(array.shape)}",
            "write it as .npy or .npz, or give --layout if it is an image",
        )
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
