# SPDX-License-Identifier: Apache-2.0
"""The nodes in front of a model, from a photo to its input, and those that return coordinates to the photo."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from polyop.attaching.heads import Tensor
from polyop.attaching.nodes import Nodes

_LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601


@dataclass(frozen=True)
class Preparation:
    """How a model expects an image. range: its values of black and white. corner: the image is in the upper left corner
    of the letterbox. border: the letterbox' gray; None: 0 after the normalization."""

    fit: str
    corner: bool
    border: float | None
    size: tuple[int, int]
    layout: str
    color: str
    range: tuple[float, float]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __str__(self) -> str:
        fit = self.fit + (" in the upper left corner" if self.corner and self.fit == "letterbox" else "")
        text = (
            f"{fit} {self.size[0]}x{self.size[1]}, {self.layout} {self.color}, {self.range[0]:g} to {self.range[1]:g}"
        )
        plain = set(self.mean) == {0} and set(self.std) == {1}
        return text if plain else f"{text}, mean {_list(self.mean)}, std {_list(self.std)}"


def _list(values: tuple[float, ...]) -> str:
    return ",".join(f"{value:g}" for value in values)


@dataclass(frozen=True)
class Photo:
    """Names of values. extents: the photo's width and height; gain and pad: a point p of the photo is at
    p * gain + pad of the model's input. All are (x, y), as real numbers. size: (height, width), as integers."""

    extents: str
    gain: str
    pad: str
    size: str


def prepare(b: Nodes, image: str, model_input: Tensor, how: Preparation) -> tuple[Photo, str]:
    """Writes the nodes from pixels u8[N, H, W, 3] to the model's input. Returns the photo, and the input's value."""
    size = b.extents(image, 1, 3)
    extents = b.cast(size, TensorProto.FLOAT)
    target = b.real(how.size)
    ratios = b("Div", target, extents)
    if how.fit == "letterbox":
        gain = b("Expand", b.extreme("ReduceMin", ratios, 0), b.constant([2]))
        new = b("Min", b("Max", b("Round", b("Mul", extents, gain)), b.real([1, 1])), target)
    else:
        gain, new = ratios, target
    pixels = b("Transpose", b.cast(image, TensorProto.FLOAT), perm=[0, 3, 1, 2])
    channels = b.concat(b.extents(image, 0, 1), b.constant([3]), b.cast(new, TensorProto.INT64), axis=0)
    pixels = b("Resize", pixels, "", "", channels, mode="linear", coordinate_transformation_mode="half_pixel")
    none = pad = b.real([0, 0])
    if how.fit == "letterbox":
        rest = b("Sub", target, new)
        if not how.corner:
            pad = b("Max", b("Round", b("Sub", b("Mul", rest, b.real(0.5)), b.real(0.1))), none)
        pads = b.cast(b.concat(none, pad, none, b("Sub", rest, pad), axis=0), TensorProto.INT64)
        if how.border is not None:
            pixels = b("Pad", pixels, pads, b.real(how.border))
    value = _normalized(b, _colored(b, pixels, how.color), how)
    if how.fit == "letterbox" and how.border is None:
        value = b("Pad", value, pads)
    if how.layout == "NHWC":
        value = b("Transpose", value, perm=[0, 2, 3, 1])
    if model_input.type != TensorProto.FLOAT:
        value = b.cast(value, model_input.type)
    swap = b.constant([1, 0])
    width_first = [b("Gather", v, swap, axis=0) for v in (extents, gain, pad)]
    return Photo(width_first[0], width_first[1], width_first[2], size), value


def _colored(b: Nodes, pixels: str, color: str) -> str:
    if color == "BGR":
        return b("Gather", pixels, b.constant([2, 1, 0]), axis=1)
    if color == "GRAY":
        return b("Conv", pixels, b.real(np.reshape(_LUMA, (1, 3, 1, 1))))
    return pixels


def _normalized(b: Nodes, pixels: str, how: Preparation) -> str:
    """Returns (low + pixel * (high - low) / 255 - mean) / std, as one product and one sum."""
    low, high = how.range
    mean, std = (np.reshape(np.asarray(v, np.float64), (1, -1, 1, 1)) for v in (how.mean, how.std))
    scale, shift = (high - low) / 255 / std, (low - mean) / std
    scaled = pixels if (scale == 1).all() else b("Mul", pixels, b.real(scale))
    return scaled if (shift == 0).all() else b("Add", scaled, b.real(shift))


def points_in(b: Nodes, photo: Photo, points: str, clip: bool) -> str:
    """Returns points [..., 2] of the model's input as points of the photo; with `clip`, inside it."""
    result = b("Div", b("Sub", points, photo.pad), photo.gain)
    return b("Min", b("Max", result, b.real([0, 0])), photo.extents) if clip else result


def boxes_in(b: Nodes, photo: Photo, boxes: str, rotated: bool) -> str:
    """Returns corners [..., 4], or rotated boxes [..., 5], of the photo."""
    head, tail = b.columns(boxes, 0, 2), b.columns(boxes, 2, 4)
    if rotated:
        size, angle = b("Div", tail, photo.gain), b.columns(boxes, 4, 5)
        return b.concat(points_in(b, photo, head, clip=False), size, angle)
    return b.concat(points_in(b, photo, head, clip=True), points_in(b, photo, tail, clip=True))
