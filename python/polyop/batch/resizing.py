# SPDX-License-Identifier: Apache-2.0
"""Bilinear resizing in integers, equal to the program's (cli/base/resize.h) bit for bit."""

from __future__ import annotations

import numpy as np

_ONE = 2048  # the sum of the weights along an axis
_GRAY = 114  # around a letterboxed image, as in YOLO's preprocessing


def resized(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """Returns the 8-bit pixels [H, W, C] with other extents: bilinear, half-pixel centres, no antialiasing."""
    first, second, weight = _taps(pixels.shape[1], width)
    columns = pixels.astype(np.int32)
    columns = columns[:, first] * (_ONE - weight)[None, :, None] + columns[:, second] * weight[None, :, None]
    first, second, weight = _taps(pixels.shape[0], height)
    rows = columns[first] * (_ONE - weight)[:, None, None] + columns[second] * weight[:, None, None]
    return ((rows + (_ONE * _ONE // 2)) // (_ONE * _ONE)).astype(np.uint8)


def letterboxed(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """Returns the pixels with these extents and their aspect ratio, in the middle of a gray image."""
    h, w = pixels.shape[:2]
    if w * height >= h * width:
        inside = max(1, (2 * h * width + w) // (2 * w)), width
    else:
        inside = height, max(1, (2 * w * height + h) // (2 * h))
    top, left = (height - inside[0]) // 2, (width - inside[1]) // 2
    result = np.full((height, width, pixels.shape[2]), _GRAY, np.uint8)
    result[top : top + inside[0], left : left + inside[1]] = resized(pixels, *inside)
    return result


def _taps(before: int, after: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns for each output element the two elements that it mixes, and the weight of the second."""
    doubled = (2 * np.arange(after, dtype=np.int64) + 1) * before - after
    first = doubled // (2 * after)
    weight = ((doubled - first * 2 * after) * _ONE + after) // (2 * after)
    ends = [np.clip(index, 0, before - 1) for index in (first, first + 1)]
    return ends[0], ends[1], weight.astype(np.int32)
