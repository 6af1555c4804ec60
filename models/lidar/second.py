# SPDX-License-Identifier: Apache-2.0
"""A SECOND-shaped detector (Yan et al., 2018) from points to boxes: voxels, four stages of sparse convolutions, and a
dense network on top. Weights are random, from a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from head import AnchorHead, block
from torch import Tensor, nn

import polyop
from polyop import sparse


@dataclass(frozen=True)
class Config:
    """KITTI's range and voxels, and the network of OpenPCDet. `small` is for tests."""

    range: tuple[float, ...] = (0.0, -40.0, -3.0, 70.4, 40.0, 1.0)
    voxel: tuple[float, float, float] = (0.05, 0.05, 0.1)
    channels: int = 16
    layers: int = 5
    candidates: int = 1000

    @staticmethod
    def small() -> Config:
        return Config((0.0, -12.8, -3.0, 25.6, 12.8, 1.0), (0.2, 0.2, 0.1), channels=4, layers=1, candidates=200)

    @property
    def grid(self) -> list[int]:
        """Voxels along z, y, x; one more along z than the range has."""
        z, y, x = (round((self.range[3 + a] - self.range[a]) / self.voxel[a]) for a in (2, 1, 0))
        return [z + 1, y, x]


def joined(layer: sparse.SparseModule, channels: int) -> sparse.SparseSequential:
    return sparse.SparseSequential(layer, nn.BatchNorm1d(channels), nn.ReLU())


def stage(channels: int, out: int, padding: Sequence[int], key: str) -> list[sparse.SparseSequential]:
    """A convolution that halves the extent, and two submanifold layers."""
    down = sparse.SparseConv3d(channels, out, 3, 2, padding, bias=False, indice_key=f"down_{key}")
    same = [sparse.SubMConv3d(out, out, 3, bias=False, indice_key=key) for _ in range(2)]
    return [joined(layer, out) for layer in (down, *same)]


class Second(nn.Module):
    def __init__(self, config: Config, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        c = config.channels
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            last = sparse.SparseConv3d(4 * c, 8 * c, (3, 1, 1), (2, 1, 1), bias=False, indice_key="last")
            self.middle = sparse.SparseSequential(
                joined(sparse.SubMConv3d(4, c, 3, bias=False, indice_key="first"), c),
                joined(sparse.SubMConv3d(c, c, 3, bias=False, indice_key="first"), c),
                *stage(c, 2 * c, (1, 1, 1), "second"),
                *stage(2 * c, 4 * c, (1, 1, 1), "third"),
                *stage(4 * c, 4 * c, (0, 1, 1), "fourth"),
                joined(last, 8 * c),
            )
            self.dense = block(16 * c, 8 * c, config.layers, 1)
            self.head = AnchorHead(8 * c, config.range, config.candidates)
        self.eval()

    def forward(self, points: Tensor) -> Tensor:
        """points [n, 4] (x, y, z, intensity) -> detections [K, 9], as in AnchorHead."""
        config = self.config
        coordinates = polyop.voxelization(points, config.voxel, config.range, max_points=-1)
        features, coordinates, _, _ = polyop.dynamic_scatter(points, coordinates, "mean")
        indices = torch.cat([torch.zeros_like(coordinates[:, :1]), coordinates], 1)
        x = self.middle(sparse.SparseConvTensor(features, indices, config.grid, 1)).dense()
        return self.head(self.dense(x.flatten(1, 2)))
