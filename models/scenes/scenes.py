# SPDX-License-Identifier: Apache-2.0
"""Synthetic scenes with the shapes of real data, from a seed: nothing is downloaded.

A street under a LiDAR of 64 beams, the bird's-eye view of six cameras, and a furnished room. Benchmarks, tests
and examples use them, because uniform noise has neither the density nor the empty space of such data.

python models/scenes/scenes.py street sweep.bin      f32[n, 4] as KITTI's files: x, y, z in metres, intensity in 0..1
python models/scenes/scenes.py room room.npy         f32[n, 3]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from ray_casting import Floats, Hits, through_box, through_plane, through_pole

Points = NDArray[np.float32]

SENSOR_HEIGHT = 1.73
CAR = np.array([3.9, 1.6, 1.56])
PERSON = np.array([0.6, 0.6, 1.75])


@dataclass
class Street:
    """A sweep and its objects: boxes [t, 7] (x, y, z of the centre, dx, dy, dz, yaw) in the sensor's frame."""

    points: Points  # [n, 4]: x forward, y left, z up in metres from the sensor, intensity
    boxes: Points
    is_car: NDArray[np.bool_]  # [t], otherwise a person


def beams(count: int, steps: int, lowest: float, highest: float) -> Floats:
    """Returns unit vectors of a rotating LiDAR [count * steps, 3]; elevations in degrees."""
    elevation = np.deg2rad(np.linspace(highest, lowest, count))[:, None]
    azimuth = np.linspace(-np.pi, np.pi, steps, endpoint=False)[None]
    rays = (np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation) + 0 * azimuth)
    return np.stack(rays, -1).reshape(-1, 3)


def _on_the_road(rng: np.random.Generator, count: int, size: Floats, lanes: Floats) -> Floats:
    """Returns boxes that stand on the ground in lanes along x and do not overlap."""
    boxes: list[Floats] = []
    while len(boxes) < count:
        x, lane = rng.uniform(-65, 65), rng.choice(lanes)
        y = lane + rng.normal(0, 0.3)
        extent = size * rng.uniform(0.9, 1.1, 3)
        apart = all(np.hypot(x - b[0], y - b[1]) > (extent[0] + b[3]) / 2 + 0.5 for b in boxes)
        if apart and np.hypot(x, y) > 4:
            yaw = rng.normal(0, 0.08) + (np.pi if lane > 0 else 0)
            boxes.append(np.array([x, y, extent[2] / 2 - SENSOR_HEIGHT, *extent, yaw]))
    return np.stack(boxes)


def street(seed: int = 0, steps: int = 2000, beam_count: int = 64) -> Street:
    """Returns about 0.9 points per ray, in the order of the sensor's rotation: 115,000 points of 128,000 rays.

    A flat road between houses, with cars in four lanes and at the kerbs, pedestrians, and poles. Ranges have 2 cm of
    noise, one ray of 20 returns nothing, intensity falls with the angle of incidence.
    """
    rng = np.random.default_rng(seed)
    cars = _on_the_road(rng, 28, CAR, np.array([-9.5, -5.2, -1.8, 1.8, 5.2, 9.5]))
    pedestrians = _on_the_road(rng, 10, PERSON, np.array([-12.0, 12.0]))
    houses = [
        np.array([x, side * rng.uniform(21, 26), 3.0, rng.uniform(9, 14), 14.0, rng.uniform(6, 14), 0.0])
        for x in np.arange(-70, 71, 15.0)
        for side in (-1, 1)
    ]
    poles = [
        np.array([x, side * 11.0, 0.12, -SENSOR_HEIGHT, 5.0]) for x in np.arange(-60, 61, 20.0) for side in (-1, 1)
    ]

    rays, origin = beams(beam_count, steps, -24.8, 2.0), np.zeros(3)
    hits = Hits.none(len(rays))
    hits.take(*through_plane(origin, rays, -SENSOR_HEIGHT), 0)
    for box in cars:
        low, cabin = box.copy(), box.copy()  # a car is a bonnet with a narrower cabin on it
        low[[2, 5]] = box[2] - box[5] * 0.2, box[5] * 0.6
        cabin[[2, 3, 4, 5]] = box[2] + box[5] * 0.3, box[3] * 0.55, box[4] * 0.9, box[5] * 0.4
        hits.take(*through_box(origin, rays, low), 1)
        hits.take(*through_box(origin, rays, cabin), 1)
    for box in pedestrians:
        hits.take(*through_box(origin, rays, box), 2)
    for box in houses:
        hits.take(*through_box(origin, rays, box), 3)
    for pole in poles:
        hits.take(*through_pole(origin, rays, pole), 4)

    seen = (hits.distance < 120) & (rng.random(len(rays)) > 0.05)
    distance = hits.distance[seen] + rng.normal(0, 0.02, seen.sum())
    reflects = np.array([0.25, 0.7, 0.4, 0.5, 0.9])[hits.solid[seen]]
    intensity = np.clip(reflects * (0.2 + 0.8 * hits.cosine[seen]) + rng.normal(0, 0.02, seen.sum()), 0, 1)
    points = np.concatenate([rays[seen] * distance[:, None], intensity[:, None]], 1).astype(np.float32)
    boxes = np.concatenate([cars, pedestrians]).astype(np.float32)
    return Street(points, boxes, np.arange(len(boxes)) < len(cars))


@dataclass
class Lift:
    """The inputs of bev_pool_v2: elements of depth and feature, sorted by cell, of a bird's-eye view of `cells` x
    `cells`.
    """

    ranks_depth: NDArray[np.int32]
    ranks_feat: NDArray[np.int32]
    ranks_bev: NDArray[np.int32]
    interval_starts: NDArray[np.int32]
    interval_lengths: NDArray[np.int32]


def lift(cells: int = 128, reach: float = 51.2, depths: int = 59, height: int = 16, width: int = 44) -> Lift:
    """Returns the frustums of six cameras around a car, in steps of 1 m from 1 m on, within +-reach metres and z -5..3.

    The cameras resemble those of nuScenes: images of 256 x 704 (by default at a sixteenth), a focal length of 560
    pixels, 60 degrees apart; the rear one has 350 pixels.
    """
    u, v = np.meshgrid((np.arange(width) + 0.5) * 704 / width - 352, (np.arange(height) + 0.5) * 256 / height - 140)
    depth = np.arange(depths) + 1.0
    cells_of = []
    for camera in range(6):
        focal = 350.0 if camera == 3 else 560.0
        yaw = camera * np.pi / 3
        ahead, left, up = np.broadcast_arrays(
            depth[:, None, None], -u / focal * depth[:, None, None], 1.6 - v / focal * depth[:, None, None]
        )
        x, y = np.cos(yaw) * ahead - np.sin(yaw) * left, np.sin(yaw) * ahead + np.cos(yaw) * left
        column, row = (np.floor((t + reach) * cells / (2 * reach)) for t in (x, y))
        inside = (column >= 0) & (column < cells) & (row >= 0) & (row < cells) & (up >= -5) & (up < 3)
        cells_of.append(np.where(inside, row * cells + column, -1))
    cell = np.stack(cells_of).astype(np.int32).reshape(-1)  # [6, depths, height, width]
    order = np.argsort(cell, kind="stable").astype(np.int32)
    order = order[cell[order] >= 0]
    pixel = order // (depths * height * width) * (height * width) + order % (height * width)
    ranks = cell[order]
    starts = np.flatnonzero(np.diff(ranks, prepend=-1)).astype(np.int32)
    lengths = np.diff(starts, append=len(ranks)).astype(np.int32)
    return Lift(order, pixel.astype(np.int32), ranks, starts, lengths)


def room(count: int = 16384, seed: int = 0) -> Points:
    """Returns points [count, 3] of a furnished room of 6 x 5 x 2.8 m, scanned from three positions, with 5 mm of noise,
    in random order.
    """
    rng = np.random.default_rng(seed)
    walls = np.array([0, 0, 1.4, 6, 5, 2.8, 0])
    things = [np.array([0.3, 0.2, 0.72, 1.6, 0.9, 0.04, 0.2])]  # a table, its legs, chairs, a sofa, a shelf, a lamp
    things += [np.array([0.3 + x, 0.2 + y, 0.35, 0.05, 0.05, 0.7, 0.2]) for x in (-0.7, 0.7) for y in (-0.35, 0.35)]
    for x, y, yaw in ((-0.2, 1.1, 0.1), (0.8, 1.2, -0.3), (0.2, -0.8, 2.9)):
        things += [np.array([x, y, 0.45, 0.42, 0.42, 0.05, yaw]), np.array([x, y, 0.22, 0.36, 0.36, 0.44, yaw])]
        things += [np.array([x - 0.2 * np.sin(yaw), y + 0.2 * np.cos(yaw), 0.7, 0.42, 0.04, 0.5, yaw])]
    things += [np.array([-2.4, -0.5, 0.22, 0.9, 2.1, 0.44, 0.0]), np.array([-2.8, -0.5, 0.6, 0.2, 2.1, 0.5, 0.0])]
    things += [np.array([2.8, 1.0, 1.0, 0.35, 1.8, 2.0, 0.0])]
    lamp = np.array([2.2, -1.9, 0.06, 0.0, 1.6])

    parts = []
    for position in (np.array([-1.5, 1.8, 1.5]), np.array([1.8, -1.2, 1.6]), np.array([-1.2, -2.0, 1.4])):
        rays = rng.normal(size=(count, 3))
        rays /= np.linalg.norm(rays, axis=1, keepdims=True)
        hits = Hits.none(count)
        hits.take(*through_box(position, rays, walls, inside=True), 0)
        for number, thing in enumerate(things, 1):
            hits.take(*through_box(position, rays, thing), number)
        hits.take(*through_pole(position, rays, lamp), len(things) + 1)
        parts.append(position + rays * (hits.distance + rng.normal(0, 0.005, count))[:, None])
    return rng.permutation(np.concatenate(parts))[:count].astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes a synthetic point cloud.")
    parser.add_argument("scene", choices=["street", "room"])
    parser.add_argument("file", type=Path, help=".npy, or .bin: the values alone")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    points = street(options.seed).points if options.scene == "street" else room(seed=options.seed)
    if options.file.suffix == ".npy":
        np.save(options.file, points)
    else:
        points.tofile(options.file)
    print(f"{options.file}: {points.shape[0]} points of {points.shape[1]} values")


if __name__ == "__main__":
    main()
