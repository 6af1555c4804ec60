# SPDX-License-Identifier: Apache-2.0
"""Point clouds: sampling, neighbours and gathers."""

from __future__ import annotations

import numpy as np
import torch
from harness import Case, Contest, bytes_of, in_openvino, normal, session, with_torch
from scipy.spatial import cKDTree

from cases.synthetic_scenes import room, sweep


def voxel_grid() -> Case:
    def make(threads: int) -> Contest:
        pos = (np.random.default_rng(9).random((1_000_000, 3)) * 50).astype(np.float32)
        size, start = np.full(3, 0.5, np.float32), np.zeros(3, np.float32)
        end = np.full(3, 50, np.float32)
        feeds = {"pos": pos, "size": size, "start": start, "end": end}
        ours = session("custom::torch_cluster_grid", feeds, threads)
        t = [torch.from_numpy(v) for v in (pos, size, start)]
        strides = torch.tensor([1, 101, 101 * 101])
        theirs = with_torch(lambda: (((t[0] - t[2]) / t[1]).long() * strides).sum(1))
        return Contest(ours, {"torch formulation": theirs}, bytes_of(pos) + 8e6)

    return Case("voxel_grid", "1,000,000 points", make)


def knn() -> Case:
    def make(threads: int) -> Contest:
        rng = np.random.default_rng(10)
        xyz, new = (rng.random((n, 3)).astype(np.float32) for n in (100_000, 25_000))
        ends, new_ends = (np.arange(1, 5) * n // 4 for n in (100_000, 25_000))
        feeds = {"nsample": np.array(16, np.int64), "xyz": xyz, "offset": ends.astype(np.int32), "new_xyz": new,
                 "new_offset": new_ends.astype(np.int32)}  # fmt: skip
        ours = session("custom::knnquery", feeds, threads, ["idx", "dist"])

        def trees() -> list[np.ndarray]:
            index, dist = np.empty((25_000, 16), np.int32), np.empty((25_000, 16), np.float32)
            for s in range(4):
                tree = cKDTree(xyz[s * 25_000 : (s + 1) * 25_000])
                mine = slice(s * 6250, (s + 1) * 6250)
                dist[mine], found = tree.query(new[mine], 16, workers=threads)
                index[mine] = found + s * 25_000
            return [index, dist]

        return Contest(ours, {"SciPy cKDTree (build + query)": trees}, bytes_of(xyz, new) + 25_000 * 16 * 8,
                       same=lambda a, b: np.allclose(a[1], b[1], atol=1e-6)
                       and (a[0] == b[0]).mean() > 0.9999)  # fmt: skip

    return Case("knn_query", "100k points, 25k queries, 16 neighbours, 4 segments", make)


def furthest_point_sampling(scene: str, points: int, chosen: int) -> Case:
    def make(threads: int) -> Contest:
        xyz = room(points) if scene == "room" else np.ascontiguousarray(sweep(points)[None, :, :3])
        ours = session("polyop::FurthestPointSampling", {"xyz": xyz}, threads, attributes={"num_points": chosen})
        t = torch.from_numpy(xyz[0])

        def formulation() -> torch.Tensor:
            nearest, index = torch.full((points,), torch.inf), torch.zeros(1, chosen, dtype=torch.int32)
            last = 0
            for k in range(1, chosen):
                nearest = torch.minimum(nearest, (t - t[last]).square().sum(1))
                last = int(nearest.argmax())
                index[0, k] = last
            return index

        return Contest(ours, {"torch formulation": with_torch(formulation)}, bytes_of(xyz),
                       same=lambda a, b: (a[0] == b[0]).mean() > 0.9)  # fmt: skip

    return Case("furthest_point_sampling", f"{scene}, {points:,} points, {chosen:,} chosen", make)


def ball_query(radius: float) -> Case:
    def make(threads: int) -> Contest:
        xyz, centres = room(16384), room(4096, 1)
        feeds = {"xyz": xyz, "center": centres}
        ours = session("polyop::BallQuery", feeds, threads, attributes={"max_radius": radius, "sample_num": 32})
        tx, tc = torch.from_numpy(xyz), torch.from_numpy(centres)

        def formulation() -> torch.Tensor:
            index = torch.arange(16384).expand(1, 4096, -1).clone()
            index[torch.cdist(tc, tx, compute_mode="donot_use_mm_for_euclid_dist") >= radius] = 16384
            index = index.topk(32, largest=False, sorted=True).values
            first = index[..., :1]
            return torch.where(index == 16384, torch.where(first == 16384, 0, first), index).int()

        return Contest(ours, {"torch cdist + topk": with_torch(formulation)}, bytes_of(xyz, centres) + 4096 * 32 * 4,
                       same=lambda a, b: (a[0] == b[0]).mean() > 0.999)  # fmt: skip

    return Case("ball_query", f"room, 16,384 points, 4,096 centres, {radius} m, 32 samples", make)


def three_nn() -> Case:
    def make(threads: int) -> Contest:
        target, source = room(16384), room(4096, 1)
        ours = session("polyop::ThreeNN", {"target": target, "source": source}, threads, ["dist", "idx"])
        tt, ts = torch.from_numpy(target), torch.from_numpy(source)
        theirs = with_torch(lambda: torch.cdist(tt, ts).topk(3, largest=False).values)

        def tree() -> list[np.ndarray]:
            return [cKDTree(source[0]).query(target[0], 3, workers=threads)[0].astype(np.float32)[None]]

        return Contest(ours, {"torch cdist + topk": theirs, "SciPy cKDTree (build + query)": tree},
                       bytes_of(target, source) + 16384 * 24,
                       same=lambda a, b: np.allclose(a[0], b[0], atol=2e-3))  # fmt: skip

    return Case("three_nn", "room, 16,384 points, 4,096 sources", make)


def chamfer_distance() -> Case:
    def make(threads: int) -> Contest:
        a, b = (np.random.default_rng(n).random((2, 4096, 2)).astype(np.float32) * 100 for n in (41, 42))
        ours = session("polyop::ChamferDistance", {"xyz1": a, "xyz2": b}, threads, ["dist1", "dist2", "idx1", "idx2"])
        first, second = torch.from_numpy(a), torch.from_numpy(b)

        def nearest(own: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            found = [
                ((rows[:, :, None] - other[:, None]) ** 2).sum(-1).min(-1) for rows in own.split((1 << 22) // 4096, 1)
            ]
            return torch.cat([f.values for f in found], 1), torch.cat([f.indices for f in found], 1)

        def formulation() -> list[torch.Tensor]:
            (dist1, idx1), (dist2, idx2) = nearest(first, second), nearest(second, first)
            return [dist1, dist2, idx1, idx2]

        return Contest(ours, {"torch formulation": with_torch(formulation)}, bytes_of(a, b) * 2,
                       same=lambda a, b: all(np.allclose(a[i], b[i], atol=1e-4) for i in (0, 1)))  # fmt: skip

    return Case("chamfer_distance", "2 x 4,096 points twice, 2-D", make)


def three_interpolate() -> Case:
    def make(threads: int) -> Contest:
        features, weight = normal(18, 1, 128, 4096), np.random.default_rng(19).random((1, 16384, 3)).astype(np.float32)
        index = np.random.default_rng(20).integers(0, 4096, (1, 16384, 3)).astype(np.int32)
        ours = session("polyop::ThreeInterpolate", {"features": features, "idx": index, "weight": weight}, threads)
        tf, tw = torch.from_numpy(features), torch.from_numpy(weight)
        ti = torch.from_numpy(index.astype(np.int64)).flatten(1)[:, None].expand(-1, 128, -1)
        theirs = with_torch(lambda: (tf.gather(2, ti).view(1, 128, 16384, 3) * tw[:, None]).sum(-1))
        return Contest(ours, {"torch gather + sum": theirs}, bytes_of(features, weight, index) + 128 * 16384 * 4)

    return Case("three_interpolate", "128 channels, 4,096 to 16,384 points", make)


def group_points() -> Case:
    def make(threads: int) -> Contest:
        features = normal(21, 1, 64, 16384)
        index = np.random.default_rng(22).integers(0, 16384, (1, 4096, 32)).astype(np.int32)
        ours = session("polyop::GroupPoints", {"features": features, "idx": index}, threads)
        tf = torch.from_numpy(features)
        ti = torch.from_numpy(index.astype(np.int64)).flatten(1)[:, None].expand(-1, 64, -1)
        built_in = session("GatherElements", {"features": features, "idx": ti.contiguous().numpy()}, threads,
                           attributes={"axis": 2})  # fmt: skip
        rivals = {
            "torch gather": with_torch(lambda: tf.gather(2, ti)),
            "ONNX Runtime GatherElements": built_in,
            "OpenVINO Gather": in_openvino("Gather", 8, [features, index], threads, constants=[2], batch_dims=1),
        }
        return Contest(ours, rivals, bytes_of(features, index) + 64 * 4096 * 32 * 4,
                       same=lambda a, b: np.array_equal(a[0].ravel(), b[0].ravel()))  # fmt: skip

    return Case("group_points", "64 channels, 16,384 points, 4,096 groups of 32", make)


def gather_points() -> Case:
    def make(threads: int) -> Contest:
        features = normal(23, 4, 64, 16384)
        index = np.random.default_rng(24).integers(0, 16384, (4, 4096)).astype(np.int32)
        ours = session("polyop::GatherPoints", {"features": features, "idx": index}, threads)
        tf, ti = torch.from_numpy(features), torch.from_numpy(index.astype(np.int64))[:, None].expand(-1, 64, -1)
        rivals = {
            "torch gather": with_torch(lambda: tf.gather(2, ti)),
            "OpenVINO Gather": in_openvino("Gather", 8, [features, index], threads, constants=[2], batch_dims=1),
        }
        return Contest(ours, rivals, 2 * 4 * 64 * 4096 * 4)

    return Case("gather_points", "4 x 64 channels, 4,096 of 16,384 points", make)


def knn_of_batches() -> Case:
    def make(threads: int) -> Contest:
        xyz, centres = room(16384), room(4096, 1)
        ours = session("polyop::KNN", {"xyz": xyz, "center": centres}, threads, attributes={"k": 16})
        tx, tc = torch.from_numpy(xyz), torch.from_numpy(centres)
        theirs = with_torch(lambda: torch.cdist(tc, tx).topk(16, largest=False).indices.transpose(1, 2).int())

        def tree() -> list[np.ndarray]:
            return [cKDTree(xyz[0]).query(centres[0], 16, workers=threads)[1].T.astype(np.int32)[None]]

        return Contest(ours, {"torch cdist + topk": theirs, "SciPy cKDTree (build + query)": tree},
                       bytes_of(xyz, centres) + 4096 * 16 * 4,
                       same=lambda a, b: (a[0] == b[0]).mean() > 0.99)  # fmt: skip

    return Case("knn", "room, 16,384 points, 4,096 centres, 16 neighbours", make)


CASES = [
    voxel_grid(),
    knn(),
    knn_of_batches(),
    furthest_point_sampling("room", 16384, 4096),
    furthest_point_sampling("street", 120_000, 16384),
    ball_query(0.1),
    ball_query(0.4),
    three_nn(),
    chamfer_distance(),
    three_interpolate(),
    group_points(),
    gather_points(),
]
