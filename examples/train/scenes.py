# SPDX-License-Identifier: Apache-2.0
"""Synthetic scenes: coloured shapes that overlap, on a noisy background. A seed determines a scene."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

CLASSES = ("disc", "ring", "square", "triangle")
SIZE = 128
MAX_OBJECTS = 8
_CORNERS = {"square": 4, "triangle": 3}
_RADII = 7.0, 22.0
_NOISE = 0.06

Floats = NDArray[np.float64]


@dataclass
class Scene:
    image: NDArray[np.float32]  # [3, SIZE, SIZE] in 0 … 1
    boxes: NDArray[np.float32]  # [n, 4], (x1, y1, x2, y2) in pixels
    labels: NDArray[np.int64]  # [n], indices of CLASSES


@dataclass
class Targets:
    """The objects of a batch of scenes, padded to MAX_OBJECTS."""

    boxes: Tensor  # [B, MAX_OBJECTS, 4]
    labels: Tensor  # [B, MAX_OBJECTS], -1 where there is no object


def scene(seed: int) -> Scene:
    rng = np.random.default_rng(seed)
    image, colour = _background(rng)
    boxes: list[Floats] = []
    labels = []
    for _ in range(rng.integers(3, MAX_OBJECTS + 1)):
        for _ in range(20):  # attempts to find a position where the object hides no other one
            label = int(rng.integers(len(CLASSES)))
            radius, angle = rng.uniform(*_RADII), rng.uniform(0, 2 * np.pi)
            centre = rng.uniform(radius + 1, SIZE - radius - 1, 2)
            box = _box(CLASSES[label], centre, radius, angle)
            if all(_covered(box, other) < 0.6 for other in boxes):
                _draw(image, CLASSES[label], centre, radius, angle, _other_colour(rng, colour))
                boxes.append(box)
                labels.append(label)
                break
    image += rng.normal(0, _NOISE, image.shape)
    return Scene(np.clip(image, 0, 1).astype(np.float32), np.stack(boxes).astype(np.float32), np.array(labels))


def batch(seeds: range) -> tuple[Tensor, Targets]:
    """Returns images [B, 3, SIZE, SIZE] and their objects."""
    scenes = [scene(seed) for seed in seeds]
    boxes = np.zeros((len(scenes), MAX_OBJECTS, 4), np.float32)
    labels = np.full((len(scenes), MAX_OBJECTS), -1)
    for i, s in enumerate(scenes):
        boxes[i, : len(s.boxes)], labels[i, : len(s.labels)] = s.boxes, s.labels
    images = torch.from_numpy(np.stack([s.image for s in scenes]))
    return images, Targets(torch.from_numpy(boxes), torch.from_numpy(labels))


def _background(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Returns an image [3, SIZE, SIZE] of a few waves, and its mean colour."""
    colour = rng.uniform(0.2, 0.8, 3)
    y, x = np.mgrid[:SIZE, :SIZE] / SIZE
    image = np.broadcast_to(colour[:, None, None], (3, SIZE, SIZE)).copy()
    for _ in range(3):
        fx, fy, phase = rng.uniform(-4, 4), rng.uniform(-4, 4), rng.uniform(0, 2 * np.pi)
        image += rng.uniform(0, 0.08, 3)[:, None, None] * np.sin(2 * np.pi * (fx * x + fy * y) + phase)
    return image, colour


def _other_colour(rng: np.random.Generator, background: Floats) -> Floats:
    while True:
        colour = rng.uniform(0, 1, 3)
        if np.linalg.norm(colour - background) > 0.4:
            return colour


def _polygon(corners: int, radius: float, angle: float) -> Floats:
    angles = angle + 2 * np.pi * np.arange(corners) / corners
    return radius * np.stack([np.cos(angles), np.sin(angles)], 1)


def _box(name: str, centre: Floats, radius: float, angle: float) -> Floats:
    if name not in _CORNERS:
        return np.concatenate([centre - radius, centre + radius])
    corners = centre + _polygon(_CORNERS[name], radius, angle)
    return np.concatenate([corners.min(0), corners.max(0)])


def _covered(a: Floats, b: Floats) -> float:
    """Returns the area that the boxes share, as a fraction of the smaller one's."""
    extent = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    smaller = min(np.prod(a[2:] - a[:2]), np.prod(b[2:] - b[:2]))
    return float(np.prod(np.maximum(extent, 0)) / smaller)


def _draw(image: Floats, name: str, centre: Floats, radius: float, angle: float, colour: Floats) -> None:
    """Paints the shape over the image, with smooth edges. Pixel (i, j) has its centre at (j + 0.5, i + 0.5)."""
    low = np.maximum(np.floor(centre - radius - 1), 0).astype(int)
    high = np.minimum(np.ceil(centre + radius + 1), SIZE).astype(int)
    y, x = np.mgrid[low[1] : high[1], low[0] : high[0]] + 0.5
    x, y = x - centre[0], y - centre[1]
    distance = np.hypot(x, y)
    if name in _CORNERS:
        sides = _CORNERS[name]
        normals = _polygon(sides, 1.0, angle + np.pi / sides)
        inside = radius * np.cos(np.pi / sides) - (normals[:, :1, None] * x + normals[:, 1:, None] * y).max(0)
    else:
        inside = radius - distance
    if name == "ring":
        inside = np.minimum(inside, distance - 0.5 * radius)
    alpha = np.clip(inside + 0.5, 0, 1)
    part = image[:, low[1] : high[1], low[0] : high[0]]
    part += alpha * (colour[:, None, None] - part)
