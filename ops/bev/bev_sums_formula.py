# SPDX-License-Identifier: Apache-2.0
"""BEV pooling: products of depths and features, summed into the cells of a bird's eye view.

The view's extents are (rows, columns) or (layers, rows, columns).
"""

from __future__ import annotations

import math

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


def pooled(
    depth: Tensor, feat: Tensor, ranks_depth: Tensor, ranks_feat: Tensor, ranks_bev: Tensor, starts: Tensor, lengths: Tensor,
    extents: tuple[int, ...],
) -> Tensor:  # fmt: skip
    cells = math.prod(extents)
    starts, lengths = starts.long(), lengths.long()
    # An empty interval may start after the last rank.
    cell = torch.cat([ranks_bev.long(), ranks_bev.new_zeros(1, dtype=torch.int64)])[starts]
    rank, row_cell = interval_rows(starts, lengths, cell, len(ranks_bev), cells)
    weights = depth.flatten()[ranks_depth.long()[rank]]
    pixels = feat.flatten(0, 2)[ranks_feat.long()[rank]]
    return add_rows(weights[:, None] * pixels, row_cell, cells).reshape(1, *extents, feat.shape[3])


def pooled_body(call: Call, extents: tuple[int, ...]) -> str:
    if call.opset < 18:
        raise NoBodyError('`reduction="max"` of ScatterElements needs opset 18')
    return f"""{CONSTANTS}
        cells = Constant <value = int64[1] {{{math.prod(extents)}}}> ()
        total = Shape (ranks_bev)
{INTERVALS}
        padded = Concat <axis = 0> (ranks_bev, zero)
        interval_cell = Gather (padded, interval_starts)
        cell = Where (filled, interval_cell, cells)
{LAST_WRITES}{CELLS_OF_ROWS}
        depth_rank = Where (used, ranks_depth, zero)
        feat_rank = Where (used, ranks_feat, zero)
        minus_one = Constant <value = int64[1] {{-1}}> ()
        depths = Reshape (depth, minus_one)
        weights = Gather (depths, depth_rank)
        column = Unsqueeze (weights, one)
        feat_shape = Shape (feat)
        three = Constant <value = int64[1] {{3}}> ()
        four = Constant <value = int64[1] {{4}}> ()
        channels = Slice (feat_shape, three, four)
        pixel_shape = Concat <axis = 0> (minus_one, channels)
        pixels = Reshape (feat, pixel_shape)
        pixel = Gather (pixels, feat_rank)
        rows = Mul (column, pixel)
{ADD_ROWS}
        extents = Constant <value = int64[{len(extents) + 1}] {{1, {", ".join(map(str, extents))}}}> ()
        view_shape = Concat <axis = 0> (extents, channels)
        bev = Reshape (sums, view_shape)
    """
