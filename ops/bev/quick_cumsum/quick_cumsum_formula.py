# SPDX-License-Identifier: Apache-2.0
"""Sums features of points into the cells of a volume."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call, NoBodyError
from polyop.formulas.cells_formula import (
    ADD_ROWS,
    CELLS_OF_ROWS,
    CONSTANTS,
    INTERVALS,
    LAST_WRITES,
    add_rows,
    interval_rows,
)

DIFFERENTIABLE = (0,)


def formula(
    x: Tensor, geom_feats: Tensor, lengths: Tensor, starts: Tensor, *, batch_size: int, dimension: int, height: int, width: int
) -> Tensor:  # fmt: skip
    cells = batch_size * dimension * height * width
    starts, lengths = starts.long(), lengths.long()
    row, column, layer, image = geom_feats.long().unbind(1)
    cell_of_point = ((image * dimension + layer) * height + row) * width + column
    # An interval without points has no last point.
    last = torch.where(lengths > 0, starts + lengths, 0)
    cell = torch.cat([starts.new_zeros(1), cell_of_point])[last]
    point, point_cell = interval_rows(starts, lengths, cell, len(x), cells)
    return add_rows(x[point], point_cell, cells).reshape(batch_size, dimension, height, width, x.shape[1])


def body(call: Call, *, batch_size: int, dimension: int, height: int, width: int) -> str:
    if call.opset < 18:
        raise NoBodyError('`reduction="max"` of ScatterElements needs opset 18')
    return f"""{CONSTANTS}
        cells = Constant <value = int64[1] {{{batch_size * dimension * height * width}}}> ()
        x_shape = Shape (x)
        two_at = Constant <value = int64[1] {{2}}> ()
        total = Slice (x_shape, zero, one)
        channels = Slice (x_shape, one, two_at)
{INTERVALS}
        strides = Constant <value = int64[4] {{{width}, 1, {height * width}, {dimension * height * width}}}> ()
        steps = Mul (geom_feats, strides)
        cell_of_point = ReduceSum <keepdims = 0> (steps, one)
        padded = Concat <axis = 0> (zero, cell_of_point)
        last = Where (filled, ends, zero)
        last_cell = Gather (padded, last)
        cell = Where (filled, last_cell, cells)
{LAST_WRITES}{CELLS_OF_ROWS}
        rows = Identity (x)
{ADD_ROWS}
        extents = Constant <value = int64[4] {{{batch_size}, {dimension}, {height}, {width}}}> ()
        volume_shape = Concat <axis = 0> (extents, channels)
        bev = Reshape (sums, volume_shape)
    """
