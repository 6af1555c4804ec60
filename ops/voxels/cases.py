# SPDX-License-Identifier: Apache-2.0
from typing import Any

import torch
from torch import Tensor

PILLARS = {"voxel_size": [0.16, 0.16, 4.0], "point_cloud_range": [0.0, -39.68, -3.0, 69.12, 39.68, 1.0]}


def cells_of(points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns (z, y, x) of each point, and whether it is inside."""
    low, size = torch.tensor(PILLARS["point_cloud_range"][:3]), torch.tensor(PILLARS["voxel_size"])
    cell = ((points[:, :3] - low) / size).floor().int()
    inside = ((cell >= 0) & (cell < torch.tensor([432, 496, 1], dtype=torch.int32))).all(1)
    return cell.flip(1), inside


COUNT = 120_000
GRID: dict[str, Any] = {"voxel_size": [0.25, 0.25, 8.0], "point_cloud_range": [-50.0, -50, -5, 50, 50, 3]}


def points() -> Tensor:
    position = torch.randn(COUNT, 3) * torch.tensor([20.0, 20, 1]) - torch.tensor([0, 0, 1.0])
    return torch.cat([position, torch.rand(COUNT, 2)], 1)


def grid_tensors() -> tuple[Tensor, Tensor]:
    """Returns the size of a voxel and the range, which MMCV reads on the CPU."""
    return tuple(torch.tensor(value, device="cpu") for value in GRID.values())


# A street: the ground grows with the number of points.
CELL = 0.2


def area(n: int) -> dict[str, list[float]]:
    side = 0.1 * n**0.5
    return {"voxel_size": [CELL, CELL, 4.0], "point_cloud_range": [0.0, 0.0, -0.5, side, side, 3.5]}
