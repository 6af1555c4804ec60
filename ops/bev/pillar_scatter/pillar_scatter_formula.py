# SPDX-License-Identifier: Apache-2.0
"""Scatters features of pillars to their positions in an image."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from polyop.formulas import Call, NoBodyError
from polyop.formulas.cells_formula import ADD_ROWS, CONSTANTS, LAST_WRITES, add_rows, last_writes

DIFFERENTIABLE = (0,)

# The indices of images and their numbers of used pillars, as columns that broadcast against the pillars.
_COUNTS = """
        image_count = Squeeze (images)
        image = Range (origin, image_count, step)
        image_column = Unsqueeze (image, one)
        used_column = Unsqueeze (num, one)
"""


def formula(
    features: Tensor, coords: Tensor, num: Tensor | None, *, dense_shape: Sequence[int], batch_size: int
) -> Tensor:
    height, width = dense_shape if len(dense_shape) == 2 else (*dense_shape, *dense_shape)
    channels = features.shape[-1]
    image, _, y, x = coords.long().unbind(-1)
    images = features.shape[0] if features.ndim == 3 else batch_size
    used = torch.ones_like(image, dtype=torch.bool)
    if num is not None:
        number = torch.arange(features.shape[-2], device=features.device)
        used = number < num.reshape(-1, 1) if features.ndim == 3 else number < num
        image = torch.arange(images, device=features.device).reshape(-1, *[1] * (features.ndim - 2))
    cells = images * height * width
    cell = torch.where(used, (image * height + y) * width + x, cells).flatten()
    canvas = add_rows(features.reshape(len(cell), channels), last_writes(cell, cells), cells)
    return canvas.reshape(images, height, width, channels).permute(0, 3, 1, 2)


def body(call: Call, *, dense_shape: Sequence[int], batch_size: int) -> str:
    if call.opset < 18:
        raise NoBodyError('`reduction="max"` of ScatterElements needs opset 18')
    height, width = dense_shape if len(dense_shape) == 2 else (*dense_shape, *dense_shape)
    counted = call.has("num")
    if call.rank(0) == 3:
        images = "Slice (feature_shape, zero, one)"
    else:
        images = f"Constant <value = int64[1] {{{batch_size}}}> ()"
    # If `num` is given, the image is that of the count, and pillars beyond the count are not used.
    shift = "Mul (image_column, size)" if counted else "Identity (origin)"
    used = "Less (pillar, used_column)" if counted else "GreaterOrEqual (pillar, origin)"
    return f"""{CONSTANTS}
        feature_shape = Shape (features)
        images = {images}
        minus_one = Constant <value = int64[1] {{-1}}> ()
        minus_two = Constant <value = int64[1] {{-2}}> ()
        large = Constant <value = int64[1] {{{2**62}}}> ()
        channels = Slice (feature_shape, minus_one, large)
        pillars = Slice (feature_shape, minus_two, minus_one)
        size = Constant <value = int64[1] {{{height * width}}}> ()
        cells = Mul (images, size)
        strides = Constant <value = int64[4] {{{0 if counted else height * width}, 0, {width}, 1}}> ()
        steps = Mul (coords, strides)
        position = ReduceSum <keepdims = 0> (steps, minus_one)
        {_COUNTS if counted else ""}
        shift = {shift}
        canvas_position = Add (position, shift)
        pillar_count = Squeeze (pillars)
        pillar = Range (origin, pillar_count, step)
        used = {used}
        cell_of_pillar = Where (used, canvas_position, cells)
        cell = Reshape (cell_of_pillar, minus_one)
{LAST_WRITES}
        row_cell = Identity (target)
        pillar_shape = Concat <axis = 0> (minus_one, channels)
        rows = Reshape (features, pillar_shape)
{ADD_ROWS}
        extents = Constant <value = int64[2] {{{height}, {width}}}> ()
        canvas_shape = Concat <axis = 0> (images, extents, channels)
        channels_last = Reshape (sums, canvas_shape)
        canvas = Transpose <perm = [0, 3, 1, 2]> (channels_last)
    """
