# SPDX-License-Identifier: Apache-2.0
"""`spconv.pytorch.utils`: voxels of point clouds."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from polyop import functional

__all__ = ["PointToVoxel", "gather_features_by_pc_voxel_id"]


class PointToVoxel:
    """Groups the points of a cloud by voxel. Voxels are in the order of their first points."""

    def __init__(
        self,
        vsize_xyz: Sequence[float],
        coors_range_xyz: Sequence[float],
        num_point_features: int,
        max_num_voxels: int,
        max_num_points_per_voxel: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self.ndim = len(vsize_xyz)
        if self.ndim not in (1, 2, 3):
            raise ValueError(f"PointToVoxel: vsize_xyz: expected 1 to 3 numbers, got {list(vsize_xyz)}")
        if len(coors_range_xyz) != 2 * self.ndim:
            raise ValueError(
                f"PointToVoxel: coors_range_xyz: expected {2 * self.ndim} numbers, got {list(coors_range_xyz)}"
            )
        self.device = torch.device(device)
        self.num_point_features = num_point_features
        self.max_num_voxels = max_num_voxels
        self.max_num_points_per_voxel = max_num_points_per_voxel
        self.vsize = list(vsize_xyz)[::-1]
        self.coors_range = [*coors_range_xyz[: self.ndim][::-1], *coors_range_xyz[self.ndim :][::-1]]
        low, high = coors_range_xyz[: self.ndim], coors_range_xyz[self.ndim :]
        self.grid_size = [round((b - a) / s) for a, b, s in zip(low, high, vsize_xyz, strict=True)][::-1]
        missing = 3 - self.ndim  # a grid of one cell in each missing dimension, whose coordinates are 0
        self._size = [*map(float, vsize_xyz), *[1.0] * missing]
        self._range = [*map(float, low), *[-0.5] * missing, *map(float, high), *[0.5] * missing]

    def __call__(
        self, pc: Tensor, clear_voxels: bool = True, empty_mean: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the points of each voxel [V, max_num_points_per_voxel, F], 0 after the last one or their mean, its
        position i32 [V, D] (z, y, x), and its number of points."""
        return self._voxels(pc, empty_mean)

    def generate_voxel_with_id(
        self, pc: Tensor, clear_voxels: bool = True, empty_mean: bool = False
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Returns as well the voxel i64 [N] of each point, -1 without one."""
        voxels, indices, counts = self._voxels(pc, empty_mean)
        cells = functional.voxelization(self._in_three(pc), self._size, self._range, -1, -1)[:, 3 - self.ndim :]
        size = cells.new_tensor(self.grid_size, dtype=torch.int64)
        step = torch.ones_like(size)
        step[:-1] = size[1:].flip(0).cumprod(0).flip(0)
        inside = (cells >= 0).all(1)
        keys, order = (indices.long() * step).sum(1).sort()
        of_points = torch.where(inside, (cells.long() * step).sum(1), -1)
        at = torch.searchsorted(keys, of_points).clamp(max=max(len(keys) - 1, 0))
        if len(keys) == 0:
            return voxels, indices, counts, torch.full_like(of_points, -1)
        return voxels, indices, counts, torch.where(keys[at] == of_points, order[at], -1)

    def _in_three(self, pc: Tensor) -> Tensor:
        """Returns the coordinates with a 0 for each missing dimension."""
        return torch.nn.functional.pad(pc[:, : self.ndim].float(), (0, 3 - self.ndim)).contiguous()

    def _voxels(self, pc: Tensor, empty_mean: bool) -> tuple[Tensor, Tensor, Tensor]:
        if pc.dim() != 2 or pc.shape[1] != self.num_point_features:
            raise ValueError(f"PointToVoxel: expected points [N, {self.num_point_features}], got {list(pc.shape)}")
        points = torch.cat([self._in_three(pc), pc[:, self.ndim :].float()], 1)
        voxels, indices, counts = functional.voxelization(
            points.contiguous(), self._size, self._range, self.max_num_points_per_voxel, self.max_num_voxels
        )
        voxels = torch.cat([voxels[..., : self.ndim], voxels[..., 3:]], -1)
        if empty_mean:
            mean = voxels.sum(1, keepdim=True) / counts[:, None, None]
            rows = torch.arange(self.max_num_points_per_voxel, device=counts.device)
            voxels = torch.where((rows < counts[:, None])[..., None], voxels, mean)
        return voxels, indices[:, 3 - self.ndim :].contiguous(), counts


def gather_features_by_pc_voxel_id(seg_res_features: Tensor, pc_voxel_id: Tensor, invalid_value: float = 0) -> Tensor:
    """Returns the features of each point's voxel, `invalid_value` without one."""
    index = pc_voxel_id.to(seg_res_features.device)
    result = seg_res_features.new_full((len(index), *seg_res_features.shape[1:]), invalid_value)
    valid = index >= 0
    result[valid] = seg_res_features[index[valid]]
    return result
