# SPDX-License-Identifier: Apache-2.0
"""Synthetic scenes (models/scenes) for the benchmarks: they have the density and the empty space of real data."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models" / "scenes"))

import scenes

__all__ = ["room", "scenes", "sweep", "voxels"]


@cache
def sweep(count: int = 120_000) -> np.ndarray:
    """Returns points [count, 4] of a street: x, y, z, intensity."""
    points = scenes.street(steps=2 + count // 55).points
    return np.ascontiguousarray(points[:: len(points) // count][:count])


@cache
def room(count: int, seed: int = 0) -> np.ndarray:
    """Returns points [1, count, 3] of a room."""
    return scenes.room(count, seed)[None]


@cache
def voxels(count: int, shape: tuple[int, int, int], size: tuple[float, float, float]) -> np.ndarray:
    """Returns the voxels of a sweep that are nearest to its sensor, i32[count, 4] (0, z, y, x), in random order."""
    points = scenes.street(steps=4000).points
    middle = np.array(shape) // 2
    cells = np.floor(points[:, 2::-1] / size).astype(np.int32) + middle
    cells = np.unique(cells[((cells >= 0) & (cells < shape)).all(1)], axis=0)
    away = np.hypot(*(cells - middle)[:, 1:].T)
    nearest = np.argsort(away, kind="stable")[:count]
    if len(nearest) < count:
        raise ValueError(f"there are {len(nearest)} voxels, expected {count}")
    chosen = cells[np.random.default_rng(31).permutation(nearest)]
    return np.concatenate([np.zeros((count, 1), np.int32), chosen], 1).astype(np.int32)
