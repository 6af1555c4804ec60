# SPDX-License-Identifier: Apache-2.0
"""Bird's-eye views."""

from __future__ import annotations

import numpy as np
import torch
from harness import Case, Contest, bytes_of, normal, session, with_torch

from cases.synthetic_scenes import scenes


def bev_ranks(points: int, cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the cell of each of `points` points, sorted by cell, and each cell's start and number of points."""
    rng = np.random.default_rng(7)
    cell = np.sort(rng.integers(0, cells, points)).astype(np.int32)
    starts = np.flatnonzero(np.diff(cell, prepend=-1)).astype(np.int32)
    return cell, starts, np.diff(starts, append=points).astype(np.int32)


def bev_pool() -> Case:
    """BEVDet: six cameras of 16 x 44 pixels, 59 depths, 80 channels, a view of 128 x 128."""

    def make(threads: int) -> Contest:
        rng = np.random.default_rng(8)
        depth = rng.random((6, 59, 16, 44), dtype=np.float32)
        feat = normal(9, 6, 16, 44, 80)
        lift = scenes.lift()
        feeds = {"depth": depth, "feat": feat, **vars(lift)}
        of_depth, pixel, cell = lift.ranks_depth, lift.ranks_feat, lift.ranks_bev
        size = {"out_height": 128, "out_width": 128}
        ours = session("mmdeploy::bev_pool_v2", feeds, threads, attributes=size)
        td, tf, di, fi, bi = (torch.from_numpy(t) for t in (depth.ravel(), feat.reshape(-1, 80), of_depth, pixel, cell))

        def formulation() -> torch.Tensor:
            return torch.zeros(128 * 128, 80).index_add_(0, bi, td[di, None] * tf[fi]).view(1, 128, 128, 80)

        moved = bytes_of(depth, feat, of_depth, pixel) + 128 * 128 * 80 * 4
        return Contest(ours, {"torch index_add": with_torch(formulation)}, moved, tolerance=1e-3)

    return Case("bev_pool", "6 cameras of 59 depths, 16x44, 80 channels, 128x128", make)


def quick_cumsum() -> Case:
    def make(threads: int) -> Contest:
        cell, starts, lengths = bev_ranks(300_000, 360 * 360)
        x = normal(10, len(cell), 80)
        position = np.stack([cell // 360, cell % 360, cell * 0, cell * 0], 1).astype(np.int32)
        size = {"batch_size": 1, "dimension": 1, "height": 360, "width": 360}
        ours = session(
            "autoware::QuickCumsumCuda", {"x": x, "g": position, "l": lengths, "s": starts}, threads, attributes=size
        )
        tx, tc = torch.from_numpy(x), torch.from_numpy(cell)

        def formulation() -> torch.Tensor:
            return torch.zeros(360 * 360, 80).index_add_(0, tc, tx).view(1, 1, 360, 360, 80)

        moved = bytes_of(x) + 360 * 360 * 80 * 4
        return Contest(ours, {"torch index_add": with_torch(formulation)}, moved, tolerance=1e-3)

    return Case("quick_cumsum", "300,000 points, 80 channels, 360x360", make)


def pillar_scatter() -> Case:
    def make(threads: int) -> Contest:
        features = normal(11, 12_000, 64)
        cell = np.random.default_rng(12).permutation(496 * 432)[:12_000].astype(np.int32)
        coords = np.stack([cell * 0, cell * 0, cell // 432, cell % 432], 1).astype(np.int32)
        feeds = {"features": features, "coords": coords}
        ours = session("polyop::PillarScatter", feeds, threads, attributes={"dense_shape": [496, 432]})
        tf, tc = torch.from_numpy(features), torch.from_numpy(cell).long()

        def formulation() -> torch.Tensor:
            canvas = torch.zeros(64, 496 * 432)
            canvas[:, tc] = tf.T
            return canvas.view(1, 64, 496, 432)

        moved = bytes_of(features) + 64 * 496 * 432 * 4
        return Contest(ours, {"torch index_put": with_torch(formulation)}, moved)

    return Case("pillar_scatter", "12,000 pillars, 64 channels, 496x432", make)


CASES = [
    bev_pool(),
    quick_cumsum(),
    pillar_scatter(),
]
