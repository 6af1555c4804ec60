# SPDX-License-Identifier: Apache-2.0
"""A PointPillars-shaped detector (Lang et al., 2019) from points to boxes, in two forms with the same weights.

`PointPillars` is built from polyop's functions, like those of mmdet3d and OpenPCDet. `PluginPointPillars` has the nodes
that TAO's exporter writes for TensorRT, VoxelGeneratorPlugin and PillarScatterPlugin: padded clouds, each with its
number of points. Weights are random, from a seed: the detections are meaningless, the cost is realistic.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from head import AnchorHead, block
from torch import Tensor, nn

import polyop


@dataclass(frozen=True)
class Config:
    """KITTI's range and pillars, and the network of the paper. `small` is for tests."""

    range: tuple[float, ...] = (0.0, -39.68, -3.0, 69.12, 39.68, 1.0)
    pillar: tuple[float, float, float] = (0.16, 0.16, 4.0)
    points_a_pillar: int = 32
    pillars: int = 16000
    channels: int = 64
    stages: tuple[int, ...] = (3, 5, 5)
    candidates: int = 1000

    @staticmethod
    def small() -> Config:
        return Config(
            (0.0, -10.24, -3.0, 20.48, 10.24, 1.0), pillars=4000, channels=16, stages=(1, 1, 1), candidates=200
        )

    @property
    def canvas(self) -> list[int]:
        """Height (y) and width (x) in pillars."""
        return [round((self.range[3 + a] - self.range[a]) / self.pillar[a]) for a in (1, 0)]


class Network(nn.Module):
    """The common part of both forms: pillars' features to pillars, and a canvas of pillars to detections."""

    def __init__(self, config: Config, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        c = config.channels
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.pillar = nn.Linear(10, c)
            widths = [c, 2 * c, 4 * c]
            self.down = nn.ModuleList(
                block(before, out, layers, 2)
                for before, out, layers in zip([c, *widths], widths, config.stages, strict=False)
            )
            self.up = nn.ModuleList(
                nn.Sequential(
                    nn.ConvTranspose2d(w, 2 * c, 1 << i, 1 << i, bias=False), nn.BatchNorm2d(2 * c), nn.ReLU()
                )
                for i, w in enumerate(widths)
            )
            self.head = AnchorHead(6 * c, config.range, config.candidates)
        self.eval()

    def encode(self, features: Tensor) -> Tensor:
        """[..., points, 10] -> [..., C]."""
        return torch.relu(self.pillar(features)).amax(-2)

    def detect(self, canvas: Tensor) -> Tensor:
        """[1, C, H, W] -> detections [K, 9], as in AnchorHead."""
        stages, x = [], canvas
        for down, up in zip(self.down, self.up, strict=True):
            x = down(x)
            stages.append(up(x))
        return self.head(torch.cat(stages, 1))


class PointPillars(Network):
    def forward(self, points: Tensor) -> Tensor:
        """points [n, 4] (x, y, z, intensity) -> [K, 9]."""
        config = self.config
        voxels, coordinates, counts = polyop.voxelization(
            points, config.pillar, config.range, config.points_a_pillar, config.pillars
        )
        pillars = self.encode(self.decorate(voxels, coordinates, counts))
        coordinates = torch.cat([torch.zeros_like(coordinates[:, :1]), coordinates], 1)
        return self.detect(polyop.pillar_scatter(pillars, coordinates, config.canvas))

    def decorate(self, voxels: Tensor, coordinates: Tensor, counts: Tensor) -> Tensor:
        """Adds the offsets from the mean of the pillar's points, and from its centre: [P, points, 10]."""
        low, size = (voxels.new_tensor(v) for v in (self.config.range[:3], self.config.pillar))
        xyz = voxels[..., :3]
        mean = xyz.sum(1, keepdim=True) / counts[:, None, None]
        centre = (coordinates.flip(1) + 0.5) * size + low
        filled = torch.arange(voxels.shape[1]) < counts[:, None]
        return torch.cat([voxels, xyz - mean, xyz - centre[:, None]], -1) * filled[..., None]


class PluginPointPillars(Network):
    def forward(self, points: Tensor, num_points: Tensor) -> Tensor:
        """points [1, n, 4], of which the first num_points i32[1] are valid -> [K, 9]."""
        config = self.config
        voxels, coordinates, count = torch.ops.polyop.voxel_generator(
            points, num_points, voxel_size=list(config.pillar), point_cloud_range=list(config.range),
            max_num_points_per_voxel=config.points_a_pillar, max_voxels=config.pillars, voxel_feature_num=10,
        )  # fmt: skip
        pillars = self.encode(voxels)
        return self.detect(torch.ops.polyop.pillar_scatter(pillars, coordinates, count, dense_shape=config.canvas))
