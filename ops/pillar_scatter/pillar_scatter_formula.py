"""Pillars' features put at their places in a picture."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from polyop.formulas import Call, NoBodyError
from polyop.formulas.cells_formula import ADD_ROWS, CONSTANTS, LAST_CLAIMS, add_rows, last_claims

DIFFERENTIABLE = (0,)

# The numbers of pictures, and of the pillars that are used of each, as columns beside its pillars.
_COUNTS = """
        picture_count = Squeeze (pictures)
        picture = Range (origin, picture_count, step)
        picture_column = Unsqueeze (picture, one)
        used_column = Unsqueeze (num, one)
"""


def formula(
    features: Tensor, coords: Tensor, num: Tensor | None, *, dense_shape: Sequence[int], batch_size: int
) -> Tensor:
    height, width = dense_shape if len(dense_shape) == 2 else (*dense_shape, *dense_shape)
    channels = features.shape[-1]
    picture, _, y, x = coords.long().unbind(-1)
    pictures = features.shape[0] if features.ndim == 3 else batch_size
    used = torch.ones_like(picture, dtype=torch.bool)
    if num is not None:
        number = torch.arange(features.shape[-2], device=features.device)
        used = number < num.reshape(-1, 1) if features.ndim == 3 else number < num
        picture = torch.arange(pictures, device=features.device).reshape(-1, *[1] * (features.ndim - 2))
    cells = pictures * height * width
    cell = torch.where(used, (picture * height + y) * width + x, cells).flatten()
    canvas = add_rows(features.reshape(len(cell), channels), last_claims(cell, cells), cells)
    return canvas.reshape(pictures, height, width, channels).permute(0, 3, 1, 2)


def body(call: Call, *, dense_shape: Sequence[int], batch_size: int) -> str:
    if call.opset < 18:
        raise NoBodyError("ONNX scatters the greatest from opset 18 on")
    height, width = dense_shape if len(dense_shape) == 2 else (*dense_shape, *dense_shape)
    counted = call.has("num")
    if call.rank(0) == 3:
        pictures = "Slice (feature_shape, zero, one)"
    else:
        pictures = f"Constant <value = int64[1] {{{batch_size}}}> ()"
    # Where pillars are counted, the picture is that of the count, and those behind it have no place.
    shift = "Mul (picture_column, size)" if counted else "Identity (origin)"
    used = "Less (pillar, used_column)" if counted else "GreaterOrEqual (pillar, origin)"
    return f"""{CONSTANTS}
        feature_shape = Shape (features)
        pictures = {pictures}
        minus_one = Constant <value = int64[1] {{-1}}> ()
        minus_two = Constant <value = int64[1] {{-2}}> ()
        large = Constant <value = int64[1] {{{2**62}}}> ()
        channels = Slice (feature_shape, minus_one, large)
        pillars = Slice (feature_shape, minus_two, minus_one)
        size = Constant <value = int64[1] {{{height * width}}}> ()
        cells = Mul (pictures, size)
        strides = Constant <value = int64[4] {{{0 if counted else height * width}, 0, {width}, 1}}> ()
        steps = Mul (coords, strides)
        place = ReduceSum <keepdims = 0> (steps, minus_one)
        {_COUNTS if counted else ""}
        shift = {shift}
        own_place = Add (place, shift)
        pillar_count = Squeeze (pillars)
        pillar = Range (origin, pillar_count, step)
        used = {used}
        cell_of_pillar = Where (used, own_place, cells)
        cell = Reshape (cell_of_pillar, minus_one)
{LAST_CLAIMS}
        row_cell = Identity (target)
        pillar_shape = Concat <axis = 0> (minus_one, channels)
        rows = Reshape (features, pillar_shape)
{ADD_ROWS}
        extents = Constant <value = int64[2] {{{height}, {width}}}> ()
        canvas_shape = Concat <axis = 0> (pictures, extents, channels)
        channels_last = Reshape (sums, canvas_shape)
        canvas = Transpose <perm = [0, 3, 1, 2]> (channels_last)
    """
