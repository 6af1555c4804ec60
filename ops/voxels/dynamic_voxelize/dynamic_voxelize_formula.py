# SPDX-License-Identifier: Apache-2.0
"""The cells of points: quotients rounded down, or -1 outside of the grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from polyop.formulas import Call


def _fp32(value: float) -> float:
    fraction, exponent = math.frexp(value)
    return math.ldexp(round(fraction * 2**24), exponent - 24)


def _cells(voxel_size: Sequence[float], point_cloud_range: Sequence[float]) -> list[float]:
    """Returns the number of cells of each axis, computed in fp32; halves are rounded away from zero."""
    lengths = (
        _fp32(_fp32(high) - _fp32(low)) for low, high in zip(point_cloud_range[:3], point_cloud_range[3:], strict=True)
    )
    quotients = [_fp32(length / _fp32(size)) for length, size in zip(lengths, voxel_size, strict=True)]
    return [math.floor(q) + float(q - math.floor(q) >= 0.5) for q in quotients]


def formula(points: Tensor, voxel_size: Sequence[float], point_cloud_range: Sequence[float]) -> Tensor:
    xyz = points[:, :3].float()
    low, size, cells = (
        xyz.new_tensor(v) for v in (point_cloud_range[:3], voxel_size, _cells(voxel_size, point_cloud_range))
    )
    cell = ((xyz - low) / size).floor()
    inside = ((cell >= 0) & (cell < cells)).all(1, keepdim=True)
    return torch.where(inside, cell, -1.0).int().flip(1)


def body(call: Call, *, voxel_size: Sequence[float], point_cloud_range: Sequence[float]) -> str:
    del call

    def three(values: Sequence[float]) -> str:
        return f"float[3] {{{', '.join(format(float(v), '.9g') for v in values)}}}"

    return f"""
        zero = Constant <value = int64[1] {{0}}> ()
        one = Constant <value = int64[1] {{1}}> ()
        three = Constant <value = int64[1] {{3}}> ()
        xyz = Slice (points, zero, three, one)
        low = Constant <value = {three(point_cloud_range[:3])}> ()
        size = Constant <value = {three(voxel_size)}> ()
        cells = Constant <value = {three(_cells(voxel_size, point_cloud_range))}> ()
        shifted = Sub (xyz, low)
        quotient = Div (shifted, size)
        cell = Floor (quotient)
        none = Constant <value = float {{0}}> ()
        above = GreaterOrEqual (cell, none)
        below = Less (cell, cells)
        in_axis = And (above, below)
        outside = Not (in_axis)
        outside_as_number = Cast <to = 7> (outside)
        axes_outside = ReduceSum <keepdims = 1> (outside_as_number, one)
        no_axis = Constant <value = int64 {{0}}> ()
        inside = Equal (axes_outside, no_axis)
        no_cell = Constant <value = float {{-1}}> ()
        chosen = Where (inside, cell, no_cell)
        whole = Cast <to = 6> (chosen)
        reversed_axes = Constant <value = int64[3] {{2, 1, 0}}> ()
        coors = Gather <axis = 1> (whole, reversed_axes)
    """
