# SPDX-License-Identifier: Apache-2.0
"""The synthetic scenes have the promised contents, and the operators of points agree with NumPy in double precision on
them.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scenes
import torch

import polyop


@pytest.fixture(scope="module")
def street() -> scenes.Street:
    return scenes.street(seed=3)


@pytest.fixture(scope="module")
def room() -> np.ndarray:
    return scenes.room(4096, seed=3)


def inside(points: np.ndarray, box: np.ndarray, margin: float) -> np.ndarray:
    """Returns whether points lie in a box (centre, extent, yaw) that is larger by `margin` on each side."""
    offset = points[:, :3].astype(np.float64) - box[:3]
    c, s = np.cos(float(box[6])), np.sin(float(box[6]))
    local = np.stack([c * offset[:, 0] + s * offset[:, 1], c * offset[:, 1] - s * offset[:, 0], offset[:, 2]], 1)
    return (np.abs(local) <= box[3:6] / 2 + margin).all(1)


def test_a_street_is_a_sweep(street: scenes.Street) -> None:
    points = street.points
    assert points.dtype == np.float32
    assert 100_000 < len(points) < 128_000
    assert np.isfinite(points).all()
    assert (points[:, 3] >= 0).all()
    assert (points[:, 3] <= 1).all()
    assert points[:, 2].min() > -scenes.SENSOR_HEIGHT - 0.2
    ground = np.abs(points[:, 2] + scenes.SENSOR_HEIGHT) < 0.1
    assert 0.3 < ground.mean() < 0.9
    near = [b for b in street.boxes if np.hypot(b[0], b[1]) < 25]
    assert near
    assert sum(inside(points, b, 0.1).sum() > 20 for b in near) > len(near) / 2  # others are in a shadow
    assert np.array_equal(scenes.street(seed=3).points, points)
    assert not np.array_equal(scenes.street(seed=4).points[:1000], points[:1000])


def test_nothing_is_seen_through_a_car(street: scenes.Street) -> None:
    """No point lies deep within the lower half of a solid car."""
    for box in street.boxes[street.is_car]:
        low = box.copy()
        low[[2, 5]] = box[2] - box[5] * 0.2, box[5] * 0.6
        assert not inside(street.points, low, -0.15).any()


def test_a_room_is_its_surfaces(room: np.ndarray) -> None:
    walls = np.abs(np.abs(room - [0, 0, 1.4]) - [3, 2.5, 1.4]) < 0.03
    assert room.shape == (4096, 3)
    assert 0.4 < walls.any(1).mean() < 0.95
    assert (np.abs(room) < [3.05, 2.55, 2.85]).all()


def test_points_in_boxes(street: scenes.Street) -> None:
    boxes = street.boxes.copy()
    boxes[:, 2] -= boxes[:, 5] / 2  # points_in_boxes has z at the bottom
    found = polyop.points_in_boxes_all(
        torch.from_numpy(street.points[None, :, :3].copy()), torch.from_numpy(boxes[None])
    )
    for t, box in enumerate(street.boxes):
        sure, possible = inside(street.points, box, -1e-4), inside(street.points, box, 1e-4)
        mine = found[0, :, t].numpy().astype(bool)
        assert (mine >= sure).all()
        assert (mine <= possible).all()


def test_furthest_points(room: np.ndarray) -> None:
    chosen = polyop.furthest_point_sample(torch.from_numpy(room[None]), 256)[0].numpy()
    points, nearest = room.astype(np.float64), np.full(len(room), np.inf)
    for last, following in itertools.pairwise(chosen):
        nearest = np.minimum(nearest, np.square(points - points[last]).sum(1))
        assert nearest[following] >= nearest.max() * (1 - 1e-6)


def test_neighbours(room: np.ndarray) -> None:
    queries = room[:200]
    squares = np.square(queries[:, None].astype(np.float64) - room[None]).sum(-1)
    xyz, centres = torch.from_numpy(room[None]), torch.from_numpy(queries[None].copy())
    nearest = polyop.knn(16, xyz, centres)[0].numpy().T
    np.testing.assert_allclose(
        np.take_along_axis(squares, nearest, 1), np.sort(squares, 1)[:, :16], rtol=1e-4, atol=1e-9
    )
    dist, index = (t[0].numpy() for t in polyop.three_nn(centres, xyz))
    np.testing.assert_allclose(np.square(dist), np.sort(squares, 1)[:, :3], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(squares, index, 1), np.sort(squares, 1)[:, :3], rtol=1e-4, atol=1e-9)
    ball = polyop.ball_query(0.0, 0.3, 32, xyz, centres)[0].numpy()
    for row, found in zip(squares, ball, strict=True):
        candidates = np.flatnonzero(row < 0.09)[:32]
        assert np.array_equal(found, np.resize(np.append(candidates, np.full(32, candidates[0])), 32))


def test_lifting_images_into_a_view() -> None:
    lift = scenes.lift(cells=32, depths=20, height=4, width=11)
    generator = torch.Generator().manual_seed(0)
    depth, feat = torch.rand(6, 20, 4, 11, generator=generator), torch.rand(6, 4, 11, 8, generator=generator)
    ranks = [torch.from_numpy(t) for t in vars(lift).values()]
    of_depth, of_feat, cell = (t.long() for t in ranks[:3])
    want = torch.zeros(32 * 32, 8, dtype=torch.float64)
    want.index_add_(0, cell, (depth.ravel()[of_depth, None] * feat.view(-1, 8)[of_feat]).double())
    found = torch.ops.polyop.bev_pool(depth, feat, *ranks, out_height=32, out_width=32)
    torch.testing.assert_close(found.view(-1, 8), want.float(), rtol=1e-5, atol=1e-5)
    assert (want.sum(1) > 0).float().mean() > 0.1
