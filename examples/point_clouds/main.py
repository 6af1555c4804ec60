# SPDX-License-Identifier: Apache-2.0
"""A LiDAR sweep and a room: pillars, 3-D boxes before and after suppression, sampled points. Draws an image of each.

The clouds are synthetic (ray casting, models/scenes). The boxes are like those of a detector's head before suppression:
several shifted, rotated and rescaled boxes of each car.

python examples/point_clouds/main.py [FOLDER]     writes point_clouds.png into FOLDER
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import matplotlib
import torch
from torch import Tensor

import polyop

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "models" / "scenes"))

import scenes

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

RANGE, PILLAR = (-40.0, -20.0, -3.0, 40.0, 20.0, 1.0), (0.32, 0.32, 4.0)
CHOSEN = 256


def proposals(cars: Tensor, each: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Returns boxes [n, 7] near the true ones, and scores that decrease with their error."""
    spread = torch.tensor([0.35, 0.18, 0.05, 0.2, 0.08, 0.05, 0.1])
    error = torch.randn(len(cars), each, 7, generator=generator)
    boxes = (cars[:, None] + error * spread).reshape(-1, 7)
    return boxes, (-error.square().mean(-1) / 2).exp().reshape(-1)


def corners(boxes: Tensor) -> Tensor:
    """Returns the closed outlines from above, [n, 5, 2]."""
    x, y = boxes[:, 3, None] / 2, boxes[:, 4, None] / 2
    along, across = x * torch.tensor([1, 1, -1, -1, 1.0]), y * torch.tensor([1, -1, -1, 1, 1.0])
    c, s = boxes[:, 6, None].cos(), boxes[:, 6, None].sin()
    return torch.stack([boxes[:, :1] + c * along - s * across, boxes[:, 1:2] + s * along + c * across], -1)


def draw_boxes(axes: Axes, points: Tensor, boxes: Tensor, title: str) -> None:
    axes.scatter(points[:, 0], points[:, 1], s=0.15, color="#b0b0b0", linewidths=0)
    for outline in corners(boxes):
        axes.plot(*outline.T, color="#c0392b", linewidth=0.7)
    finish(axes, title)


def draw_pillars(axes: Axes, cells: Tensor, counts: Tensor) -> None:
    shape = [round((RANGE[3 + a] - RANGE[a]) / PILLAR[a]) for a in (1, 0)]
    image = torch.full(shape, torch.nan)
    image[cells[:, 1].long(), cells[:, 2].long()] = counts.float()
    image = axes.imshow(image, origin="lower", extent=(RANGE[0], RANGE[3], RANGE[1], RANGE[4]), cmap="viridis",
                        norm="log", interpolation="nearest")  # fmt: skip
    axes.figure.colorbar(image, ax=axes, label="points", shrink=0.8)
    finish(axes, f"{len(cells):,} pillars of {PILLAR[0]} m (HardVoxelize)")


def finish(axes: Axes, title: str) -> None:
    axes.set_xlim(RANGE[0], RANGE[3])
    axes.set_ylim(RANGE[1], RANGE[4])
    axes.set_aspect("equal")
    axes.set_xlabel("x, m")
    axes.set_ylabel("y, m")
    axes.set_title(title, fontsize=10)


def largest_gap(points: Tensor, chosen: Tensor) -> float:
    """How far the worst-off point is from the nearest chosen one, in metres."""
    dist, _ = polyop.three_nn(points[None], chosen[None])
    return float(dist[0, :, 0].max())


def draw_chosen(axes: Axes, points: Tensor, chosen: Tensor, title: str) -> None:
    axes.scatter(points[:, 0], points[:, 1], s=0.4, color="#d0d0d0", linewidths=0)
    axes.scatter(chosen[:, 0], chosen[:, 1], s=7, color="#1f4e79", linewidths=0)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title, fontsize=10)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(0)
    street = scenes.street()
    points = torch.from_numpy(street.points)
    voxels, cells, counts = polyop.voxelization(points, PILLAR, RANGE, 32, 40000)
    print(f"{len(points):,} points -> {len(voxels):,} pillars, {int(counts.sum()):,} points kept")

    cars = torch.from_numpy(street.boxes[street.is_car])
    boxes, scores = proposals(cars, 12, generator)
    kept = polyop.nms3d(boxes, scores, 0.1)
    overlaps = polyop.boxes_iou3d(boxes[kept], cars).amax(1)
    print(
        f"{len(boxes)} boxes of {len(cars)} cars -> {len(kept)} after NMS3D, IoU with the true ones {overlaps.mean():.2f}"
    )

    room = torch.from_numpy(scenes.room())
    far = room[polyop.furthest_point_sample(room[None], CHOSEN)[0].long()]
    random = room[torch.randperm(len(room), generator=generator)[:CHOSEN]]
    gaps = largest_gap(room, far), largest_gap(room, random)
    print(
        f"{CHOSEN} of {len(room):,} points: no point further than {gaps[0]:.2f} m from one; chosen at random {gaps[1]:.2f} m"
    )

    figure, axes = plt.subplots(3, 2, figsize=(12, 11), layout="constrained")
    near = points[points[:, 2] > -1.5]
    axes[0, 0].scatter(points[:, 0], points[:, 1], s=0.2, c=points[:, 3], cmap="magma", linewidths=0)
    finish(axes[0, 0], f"{len(points):,} points of a sweep of 64 beams, from above")
    draw_pillars(axes[0, 1], cells, counts)
    draw_boxes(axes[1, 0], near, boxes, f"{len(boxes)} boxes before suppression")
    draw_boxes(axes[1, 1], near, boxes[kept], f"{len(kept)} boxes that NMS3D keeps")
    draw_chosen(axes[2, 0], room, far, f"{CHOSEN} furthest points of a room: gaps up to {gaps[0]:.2f} m")
    draw_chosen(axes[2, 1], room, random, f"{CHOSEN} random ones: gaps up to {gaps[1]:.2f} m")
    figure.savefig(folder / "point_clouds.png", dpi=110)
    print(folder / "point_clouds.png")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
