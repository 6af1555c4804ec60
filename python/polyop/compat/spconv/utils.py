# SPDX-License-Identifier: Apache-2.0
"""`spconv.utils`: voxels of point clouds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
import torch

from polyop.compat.cumm.tensorview import Tensor, from_numpy
from polyop.compat.spconv.pytorch.utils import PointToVoxel

__all__ = ["Point2VoxelCPU1d", "Point2VoxelCPU2d", "Point2VoxelCPU3d", "Point2VoxelCPU4d", "nullcontext"]


class _Point2VoxelCPU:
    _dimensions = 3

    def __init__(
        self,
        vsize_xyz: Sequence[float],
        coors_range_xyz: Sequence[float],
        num_point_features: int,
        max_num_voxels: int,
        max_num_points_per_voxel: int,
    ) -> None:
        if len(vsize_xyz) != self._dimensions:
            raise ValueError(f"vsize_xyz: expected {self._dimensions} numbers, got {list(vsize_xyz)}")
        self._generator = PointToVoxel(
            vsize_xyz, coors_range_xyz, num_point_features, max_num_voxels, max_num_points_per_voxel
        )

    @property
    def grid_size(self) -> list[int]:
        return list(self._generator.grid_size)

    def point_to_voxel(self, points: Tensor | np.ndarray, clear_voxels: bool = True) -> tuple[Tensor, ...]:
        """Returns the points of each voxel, its position (z, y, x), and its number of points. Arrays of NumPy are
        accepted as well as `cumm.tensorview` of them."""
        return self._convert(points, clear_voxels, False)

    def point_to_voxel_empty_mean(self, points: Tensor | np.ndarray, clear_voxels: bool = True) -> tuple[Tensor, ...]:
        """The mean of a voxel's points fills its free rows."""
        return self._convert(points, clear_voxels, True)

    def _convert(self, points: Tensor | np.ndarray, clear_voxels: bool, empty_mean: bool) -> tuple[Tensor, ...]:
        array = points if isinstance(points, np.ndarray) else points.numpy_view()
        result = self._generator(torch.from_numpy(np.ascontiguousarray(array)), clear_voxels, empty_mean)
        return tuple(from_numpy(tensor.numpy()) for tensor in result)


class Point2VoxelCPU1d(_Point2VoxelCPU):
    _dimensions = 1


class Point2VoxelCPU2d(_Point2VoxelCPU):
    _dimensions = 2


class Point2VoxelCPU3d(_Point2VoxelCPU):
    _dimensions = 3


class Point2VoxelCPU4d(_Point2VoxelCPU):
    _dimensions = 4
