# SPDX-License-Identifier: Apache-2.0
"""Reduces features by voxel: the distinct rows of coordinates, and a scatter to them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0,)


def _voxels(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the distinct rows in ascending order, the index of each row among them, and their counts."""
    extents = [int(e) + 1 for e in rows.amax(0)] if rows.shape[0] else [1] * rows.shape[1]
    if math.prod(extents) >= 2**63:
        return torch.unique(rows, dim=0, return_inverse=True, return_counts=True)
    key = rows.new_zeros(rows.shape[0], dtype=torch.int64)
    for column, extent in zip(rows.unbind(1), extents, strict=True):
        key = key * extent + column
    unique, voxel, counts = torch.unique(key, return_inverse=True, return_counts=True)
    columns = []
    for extent in reversed(extents):
        columns.append(unique % extent)
        unique = unique.div(extent, rounding_mode="floor")
    return torch.stack(columns[::-1], 1).to(rows.dtype), voxel, counts


def formula(feats: Tensor, coors: Tensor, reduce_type: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    inside = (coors >= 0).all(1)
    cells, voxel, counts = _voxels(coors[inside])
    rows, voxels = feats[inside], cells.shape[0]
    if reduce_type == "max":
        reduced = rows.gather(0, _first_greatest(rows.detach(), voxel, voxels))
    else:
        reduced = rows.new_zeros(voxels, rows.shape[1]).index_add(0, voxel, rows)
        if reduce_type == "mean":
            reduced = reduced / counts[:, None]
    point2voxel = torch.full_like(inside, -1, dtype=torch.int32)
    point2voxel[inside] = voxel.int()
    return reduced, cells, point2voxel, counts.int()


def _first_greatest(rows: Tensor, voxel: Tensor, voxels: int) -> Tensor:
    """Returns the first row that attains the maximum of each voxel and channel; it receives the gradient."""
    index = voxel[:, None].expand_as(rows)
    maximum = rows.new_full((voxels, rows.shape[1]), -torch.inf).scatter_reduce(0, index, rows, "amax")
    is_maximum = (rows == maximum[voxel]) | rows.isnan()
    number = torch.arange(rows.shape[0], device=rows.device)[:, None]
    number = torch.where(is_maximum, number, rows.shape[0])
    return torch.full(maximum.shape, rows.shape[0], device=rows.device).scatter_reduce(0, index, number, "amin")


def body(call: Call, *, reduce_type: str) -> str | None:
    if call.opset < 18:
        return None
    return f"""
        zero = Constant <value = int64 {{0}}> ()
        axis = Constant <value = int64[1] {{1}}> ()
        wide = Cast <to = 7> (coors)
        is_negative = Less (wide, zero)
        negative = Cast <to = 7> (is_negative)
        negatives = ReduceSum <keepdims = 0> (negative, axis)
        inside = Equal (negatives, zero)
        kept = Compress <axis = 0> (wide, inside)
        rows = Compress <axis = 0> (feats, inside)
        cells, first, voxel, amounts = Unique <axis = 0, sorted = 1> (kept)
        own_coors = Compress <axis = 0> (coors, inside)
        voxel_coors = Gather <axis = 0> (own_coors, first)
        counts = Cast <to = 6> (amounts)
        points = Shape (inside)
        minus_one = Constant <value = int64[1] {{-1}}> ()
        no_voxel = Expand (minus_one, points)
        row_of_positions = NonZero (inside)
        positions = Transpose (row_of_positions)
        voxels = ScatterND (no_voxel, positions, voxel)
        point2voxel = Cast <to = 6> (voxels)
        extents = Shape (rows)
        voxel_count = Shape (amounts)
        channels = Gather (extents, axis)
        shape = Concat <axis = 0> (voxel_count, channels)
        column = Unsqueeze (voxel, axis)
        index = Expand (column, extents)
        null = Constant <value = float {{0}}> ()
        {_REDUCED[reduce_type]}
    """


_SUM = """
        start = Expand (null, shape)
        {result} = ScatterElements <axis = 0, reduction = "add"> (start, index, rows)
"""
_REDUCED = {
    "sum": _SUM.format(result="voxel_feats"),
    "mean": _SUM.format(result="sums")
    + """
        amount = Cast <to = 1> (amounts)
        divisor = Unsqueeze (amount, axis)
        voxel_feats = Div (sums, divisor)
    """,
    "max": """
        minus_infinity = Log (null)
        start = Expand (minus_infinity, shape)
        voxel_feats = ScatterElements <axis = 0, reduction = "max"> (start, index, rows)
    """,
}
