# SPDX-License-Identifier: Apache-2.0
"""Points to voxels, and reductions over voxels."""

from __future__ import annotations

import numpy as np
import torch
from harness import Case, Contest, bytes_of, in_openvino, normal, session, with_torch

from cases import with_spconv
from cases.synthetic_scenes import sweep

PILLARS = {"voxel_size": [0.16, 0.16, 4.0], "point_cloud_range": [0.0, -39.68, -3.0, 69.12, 39.68, 1.0]}


def cells_of(points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns (z, y, x) of each point, and whether it is inside."""
    low, size = torch.tensor(PILLARS["point_cloud_range"][:3]), torch.tensor(PILLARS["voxel_size"])
    cell = ((points[:, :3] - low) / size).floor().int()
    inside = ((cell >= 0) & (cell < torch.tensor([432, 496, 1], dtype=torch.int32))).all(1)
    return cell.flip(1), inside


def hard_voxelize() -> Case:
    def make(threads: int) -> Contest:
        points = sweep()
        ours = session("polyop::HardVoxelize", {"points": points}, threads, ["voxels", "coors", "num"],
                       attributes={**PILLARS, "max_num_points": 32, "max_voxels": 40_000})  # fmt: skip
        tp = torch.from_numpy(points)

        def formulation() -> list[torch.Tensor]:
            cell, inside = cells_of(tp)
            kept = inside.nonzero().squeeze(1)
            key = cell[kept, 1] * 432 + cell[kept, 2]
            _, run, size = torch.unique(key, return_inverse=True, return_counts=True)
            first = torch.full(size.shape, len(key)).scatter_reduce(0, run, torch.arange(len(key)), "amin")
            number = torch.empty_like(size)
            number[first.argsort()] = torch.arange(len(size))
            order = run.argsort(stable=True)
            slot = torch.arange(len(key)) - (size.cumsum(0) - size)[run[order]]
            order, slot = order[slot < 32], slot[slot < 32]
            voxels = torch.zeros(len(size), 32, 4)
            voxels[number[run[order]], slot] = tp[kept[order]]
            coors = cell[kept[first.sort().values]]
            return [voxels, coors, torch.empty_like(size).index_put_((number,), size).clamp(max=32).int()]

        written = bytes_of(*[np.asarray(o.numpy()) for o in ours()])
        spconv = with_spconv.voxels(points, PILLARS["voxel_size"], PILLARS["point_cloud_range"], 40_000, 32)
        rivals = {"torch unique + index_put": with_torch(formulation), "spconv": spconv}
        return Contest(ours, rivals, bytes_of(points) + written)

    return Case("hard_voxelize", "120,000 points, 432 x 496 pillars of 32", make)


def dynamic_voxelize() -> Case:
    def make(threads: int) -> Contest:
        points = sweep()
        ours = session("polyop::DynamicVoxelize", {"points": points}, threads, attributes=PILLARS)
        tp = torch.from_numpy(points)

        def formulation() -> torch.Tensor:
            cell, inside = cells_of(tp)
            return torch.where(inside[:, None], cell, -1)

        return Contest(ours, {"torch formulation": with_torch(formulation)}, bytes_of(points) + 120_000 * 12)

    return Case("dynamic_voxelize", "120,000 points, 432 x 496 pillars", make)


def voxel_generator() -> Case:
    def make(threads: int) -> Contest:
        points, num = sweep()[None], np.array([120_000], np.int32)
        attributes = {**PILLARS, "max_num_points_per_voxel": 32, "max_voxels": 10_000, "voxel_feature_num": 10}
        ours = session("::VoxelGeneratorPlugin", {"points": points, "num": num}, threads, ["v", "c", "n"],
                       attributes=attributes)  # fmt: skip
        return Contest(ours, {}, bytes_of(points) + 10_000 * (32 * 10 + 4) * 4)

    return Case("voxel_generator", "120,000 points, 10,000 pillars of 32", make)


def dynamic_scatter(reduce: str) -> Case:
    def make(threads: int) -> Contest:
        points = torch.from_numpy(sweep())
        cell, inside = cells_of(points)
        coors, feats = torch.where(inside[:, None], cell, -1).numpy(), normal(28, 120_000, 64)
        ours = session("polyop::DynamicScatter", {"feats": feats, "coors": coors}, threads, ["f", "c", "p", "n"],
                       attributes={"reduce_type": reduce})  # fmt: skip
        tf, tc = torch.from_numpy(feats), torch.from_numpy(coors)

        def formulation() -> list[torch.Tensor]:
            kept = (tc >= 0).all(1)
            rows, some = tf[kept], tc[kept]
            cells, slot, counts = torch.unique(some, dim=0, return_inverse=True, return_counts=True)
            empty = torch.zeros(len(cells), 64)
            if reduce == "max":
                return [empty.scatter_reduce(0, slot[:, None].expand_as(rows), rows, "amax", include_self=False), cells]
            return [empty.index_add(0, slot, rows) / counts[:, None], cells]

        moved = bytes_of(feats, coors, *[np.asarray(o.numpy()) for o in ours()])
        return Contest(ours, {"torch unique(dim=0) + scatter": with_torch(formulation)}, moved)

    return Case("dynamic_scatter", f"{reduce} of 120,000 points, 64 channels, 432 x 496 pillars", make)


def segment_csr(reduce: str) -> Case:
    def make(threads: int) -> Contest:
        src = normal(29, 200_000, 64)
        indptr = np.sort(np.random.default_rng(30).integers(0, 200_001, 50_001))
        indptr[[0, -1]] = 0, 200_000
        ours = session("autoware::SegmentCSR", {"src": src, "indptr": indptr}, threads, attributes={"reduce": reduce})
        ts, ti = torch.from_numpy(src), torch.from_numpy(indptr)
        rivals = {"torch segment_reduce": with_torch(
            lambda: torch.segment_reduce(ts, reduce, offsets=ti, axis=0, initial=0 if reduce == "sum" else None).nan_to_num(0, 0, 0)
        )}  # fmt: skip
        if reduce == "sum":
            rows = np.arange(200_000, dtype=np.int32)
            rivals["OpenVINO EmbeddingBagOffsets"] = in_openvino(
                "EmbeddingBagOffsets", 15, [src, rows, indptr[:-1].astype(np.int32)], threads, reduction="sum"
            )
        else:
            segment = np.repeat(np.arange(50_000, dtype=np.int32), np.diff(indptr))
            rivals["OpenVINO SegmentMax"] = in_openvino(
                "SegmentMax", 16, [src, segment], threads, constants=[50_000], fill_mode="ZERO"
            )
        return Contest(ours, rivals, bytes_of(src, indptr) + 50_000 * 64 * 4)

    return Case("segment_csr", f"{reduce} of 200,000 rows in 50,000 segments, 64 channels", make)


def embedding_bag(mode: str, channels: int) -> Case:
    def make(threads: int) -> Contest:
        table = normal(32, 100_000, channels)
        indices = np.random.default_rng(33).integers(0, 100_000, 80_000)
        offsets = np.arange(0, 80_000, 20)
        inputs = {"weight": table, "indices": indices, "offsets": offsets}
        ours = session("polyop::EmbeddingBag", inputs, threads, attributes={"mode": mode})
        weight, index, starts = (torch.from_numpy(array) for array in inputs.values())
        rivals = {"torch embedding_bag": with_torch(
            lambda: torch.nn.functional.embedding_bag(index, weight, starts, mode=mode)
        )}  # fmt: skip
        if mode != "max":
            rivals["OpenVINO EmbeddingBagOffsets"] = in_openvino(
                "EmbeddingBagOffsets", 15, [table, indices.astype(np.int32), offsets.astype(np.int32)], threads,
                reduction=mode,
            )  # fmt: skip
        return Contest(ours, rivals, 84_000 * channels * 4)

    return Case("embedding_bag", f"{mode} of 4,000 bags of 20 rows of 100,000, {channels} channels", make)


def integers(limit: int) -> np.ndarray:
    return np.random.default_rng(31).integers(0, limit, 500_000)


def custom_unique(limit: int) -> Case:
    def make(threads: int) -> Contest:
        x = integers(limit)
        ours = session("autoware::CustomUnique", {"x": x}, threads, ["u", "i", "c", "n"])
        tx = torch.from_numpy(x)
        theirs = with_torch(lambda: torch.unique(tx, return_inverse=True, return_counts=True))
        built_in = session("Unique", {"x": x}, threads, ["u", "f", "i", "c"], attributes={"sorted": 1})
        # OpenVINO's Unique takes quadratic time: minutes.
        return Contest(ours, {"torch unique": theirs, "ONNX Runtime Unique": built_in}, 3 * bytes_of(x),
                       same=lambda a, b: all(
                           np.array_equal(i, j)
                           for i, j in zip(a[:3], b[-3:] if len(b) == 3 else [b[0], *b[2:]], strict=True)))  # fmt: skip

    return Case("custom_unique", f"500,000 integers below {limit:.0e}", make)


def argsort(limit: int) -> Case:
    def make(threads: int) -> Contest:
        x = integers(limit)
        ours = session("autoware::Argsort", {"x": x}, threads)
        tx = torch.from_numpy(x)
        theirs = with_torch(lambda: torch.argsort(tx, stable=True))
        return Contest(ours, {"torch argsort(stable)": theirs}, 2 * bytes_of(x), tolerance=0)

    return Case("argsort", f"500,000 integers below {limit:.0e}", make)


def sort_rows() -> Case:
    def make(threads: int) -> Contest:
        x = normal(7, 1000, 1000)
        ours = session("polyop::Argsort", {"x": x}, threads)
        tx = torch.from_numpy(x)
        theirs = with_torch(lambda: torch.argsort(tx, 1, stable=True))
        return Contest(ours, {"torch argsort(stable)": theirs}, 3 * bytes_of(x), tolerance=0)

    return Case("argsort", "1,000 rows of 1,000 floats", make)


def select_and_pad() -> Case:
    def make(threads: int) -> Contest:
        feat, invalid = normal(32, 6, 40_000, 256), normal(33, 256)
        flags = (np.random.default_rng(34).random(40_000) < 0.2).astype(np.int32)
        ours = session("::SelectAndPadPlugin", {"feat": feat, "flags": flags, "invalid": invalid}, threads,
                       attributes={"P": 10_000})  # fmt: skip
        tf, tg, tv = (torch.from_numpy(t) for t in (feat, flags, invalid))

        def formulation() -> torch.Tensor:
            some = tf[:, tg.nonzero().squeeze(1)[:10_000]]
            return torch.cat([some, tv.expand(6, 10_000 - some.shape[1], 256)], 1)

        return Contest(ours, {"torch index + cat": with_torch(formulation)}, 2 * 6 * 10_000 * 256 * 4)

    return Case("select_and_pad", "10,000 of 40,000 rows, 6 x 256 channels", make)


CASES = [
    hard_voxelize(),
    dynamic_voxelize(),
    voxel_generator(),
    dynamic_scatter("max"),
    dynamic_scatter("mean"),
    segment_csr("sum"),
    segment_csr("max"),
    embedding_bag("sum", 64),
    embedding_bag("mean", 128),
    embedding_bag("max", 32),
    custom_unique(100_000),
    custom_unique(2**62),
    argsort(100_000),
    argsort(2**62),
    sort_rows(),
    select_and_pad(),
]
