# SPDX-License-Identifier: Apache-2.0
"""Casts rays against simple solids, for the synthetic scenes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass
class Hits:
    """The nearest solid that each of n rays hits."""

    distance: Floats  # [n], infinite where a ray hits nothing
    solid: NDArray[np.int64]  # [n], index of the solid in the order of `take`, or -1
    cosine: Floats  # [n], between the ray and the surface's normal

    @staticmethod
    def none(count: int) -> Hits:
        return Hits(np.full(count, np.inf), np.full(count, -1), np.zeros(count))

    def take(self, distance: Floats, cosine: Floats, solid: int) -> None:
        """Keeps the nearer of the recorded hits and those of another solid; NaN is a miss."""
        nearer = distance < self.distance
        self.distance[nearer], self.cosine[nearer], self.solid[nearer] = distance[nearer], cosine[nearer], solid


def rotated(vectors: Floats, yaw: float) -> Floats:
    """Returns vectors [..., 3] in a frame that is rotated by `yaw`, counter-clockwise, about z."""
    c, s = np.cos(yaw), np.sin(yaw)
    x, y = vectors[..., 0], vectors[..., 1]
    return np.stack([c * x + s * y, c * y - s * x, vectors[..., 2]], -1)


def through_box(origin: Floats, rays: Floats, box: Floats, *, inside: bool = False) -> tuple[Floats, Floats]:
    """Returns distances and cosines of rays [n, 3] from one origin to a box (x, y, z of its centre, dx, dy, dz, yaw).

    With `inside`, the origin lies within the box, a room, and the rays hit its walls.
    """
    start, rays = rotated(origin - box[:3], box[6]), rotated(rays, box[6])
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (-box[3:6] / 2 - start) / rays, (box[3:6] / 2 - start) / rays
    near, far = np.minimum(first, second), np.maximum(first, second)
    enter, leave = near.max(1), far.min(1)
    axis = far.argmin(1) if inside else near.argmax(1)
    distance = np.where(enter <= leave, leave if inside else enter, np.inf)
    distance = np.where(distance > 0, distance, np.inf)
    return distance, np.abs(rays[np.arange(len(rays)), axis])


def through_plane(origin: Floats, rays: Floats, height: float) -> tuple[Floats, Floats]:
    """Returns distances and cosines to a horizontal plane below the origin."""
    with np.errstate(divide="ignore"):
        distance = np.where(rays[:, 2] < 0, (height - origin[2]) / rays[:, 2], np.inf)
    return distance, np.abs(rays[:, 2])


def through_pole(origin: Floats, rays: Floats, pole: Floats) -> tuple[Floats, Floats]:
    """Returns distances and cosines to an upright cylinder (x, y, radius, bottom, top)."""
    x, y = origin[0] - pole[0], origin[1] - pole[1]
    a = rays[:, 0] ** 2 + rays[:, 1] ** 2
    b = rays[:, 0] * x + rays[:, 1] * y
    root = b**2 - a * (x**2 + y**2 - pole[2] ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = (-b - np.sqrt(root)) / a
        z = origin[2] + distance * rays[:, 2]
        hit = (root >= 0) & (distance > 0) & (z >= pole[3]) & (z <= pole[4])
        across = np.sqrt(np.maximum(root, 0) / a) / pole[2]
    return np.where(hit, distance, np.inf), np.where(hit, across, 0)
