# SPDX-License-Identifier: Apache-2.0
"""Scans, pooling, norms and copies."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from harness import Case, Contest, bytes_of, in_openvino, normal, session, with_torch

from cases.regions import in_torch


def cumulative(name: str, dim: int) -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 64, 512, 512)
        ours = session(f"mmcv::{name}", {"x": x}, threads, ["values", "indices"], attributes={"dim": dim})
        tx, function = torch.from_numpy(x), getattr(torch, name)
        out = (torch.empty_like(tx), torch.empty(tx.shape, dtype=torch.int64))
        theirs = with_torch(lambda: function(tx, dim, out=out))
        return Contest(ours, {f"torch {name} (out=)": theirs}, bytes_of(x) * 4)

    return Case(name, f"64x512x512, dim {dim}", make)


def running(name: str, dim: int) -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 64, 512, 512)
        ours = session(f"polyop::{name}", {"x": x}, threads, attributes={"axis": dim})
        tx, function = torch.from_numpy(x), getattr(torch, name.lower())
        out = torch.empty_like(tx)
        return Contest(
            ours, {f"torch {name.lower()} (out=)": with_torch(lambda: function(tx, dim, out=out))}, bytes_of(x) * 2
        )

    return Case("cumulative", f"{name}, 64x512x512, dim {dim}", make)


def corner_pool(mode: int) -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 1, 128, 256, 256)
        ours = session("mmcv::MMCVCornerPool", {"x": x}, threads, attributes={"mode": mode})
        tx, dim = torch.from_numpy(x), 2 if mode < 2 else 3
        if mode in (1, 3):
            theirs = with_torch(lambda: tx.cummax(dim).values)
        else:
            theirs = with_torch(lambda: tx.flip(dim).cummax(dim).values.flip(dim))
        return Contest(ours, {"torch cummax": theirs}, bytes_of(x) * 2)

    return Case("corner_pool", f"128x256x256, {('top', 'bottom', 'left', 'right')[mode]}", make)


def instance_norm() -> Case:
    def make(threads: int) -> Contest:
        x, scale, bias = normal(0, 1, 64, 512, 512), normal(1, 64), normal(2, 64)
        feeds = {"x": x, "scale": scale, "B": bias}
        ours = session("mmcv::MMCVInstanceNormalization", feeds, threads, attributes={"epsilon": 1e-5})
        built_in = session("InstanceNormalization", feeds, threads, attributes={"epsilon": 1e-5})
        return Contest(ours, {"ONNX Runtime InstanceNormalization": built_in}, bytes_of(x) * 2, tolerance=1e-3)

    return Case("instance_norm", "64x512x512", make)


def scatter_nd() -> Case:
    def make(threads: int) -> Contest:
        rng = np.random.default_rng(8)
        x, updates = normal(0, 4096, 1024), normal(1, 1024, 1024)
        indices = rng.permutation(4096)[:1024, None].astype(np.int64)
        feeds = {"x": x, "i": indices, "u": updates}
        rivals = {
            "ONNX Runtime ScatterND": session("ScatterND", feeds, threads),
            "OpenVINO ScatterNDUpdate": in_openvino(
                "ScatterNDUpdate", 4, [x, indices.astype(np.int32), updates], threads
            ),
        }
        moved = bytes_of(x) * 2 + bytes_of(updates) * 2
        return Contest(session("mmcv::ScatterND", feeds, threads), rivals, moved)

    return Case("scatter_nd", "4096x1024, 1024 rows", make)


def gather_topk() -> Case:
    def make(threads: int) -> Contest:
        data = normal(0, 4, 20000, 80)
        index = np.random.default_rng(11).integers(0, 20000, (4, 1000)).astype(np.int32)
        ours = session("mmdeploy::GatherTopk", {"data": data, "indices": index}, threads)
        td, ti = torch.from_numpy(data), torch.from_numpy(index.astype(np.int64))[..., None].expand(-1, -1, 80)
        rivals = {
            "torch gather": with_torch(lambda: td.gather(1, ti)),
            "OpenVINO Gather": in_openvino("Gather", 8, [data, index], threads, constants=[1], batch_dims=1),
        }
        return Contest(ours, rivals, 2 * 4 * 1000 * 80 * 4)

    return Case("gather_topk", "4x20000x80, 1,000 rows", make)


def grid_priors() -> Case:
    def make(threads: int) -> Contest:
        base, height, width = normal(0, 9, 4), np.zeros(200, np.int64), np.zeros(304, np.int64)
        ours = session("mmdeploy::GridPriorsTRT", {"base": base, "h": height, "w": width}, threads,
                       attributes={"stride_h": 4, "stride_w": 4})  # fmt: skip
        tb = torch.from_numpy(base)

        def formulation() -> torch.Tensor:
            y, x = torch.meshgrid(torch.arange(200.0) * 4, torch.arange(304.0) * 4, indexing="ij")
            shifts = torch.stack([x, y, x, y], -1).reshape(-1, 1, 4)
            return (shifts + tb).reshape(-1, 4)

        # Only the extents of the last two inputs matter; the anchors lie around the cells' centres.
        features, image = np.zeros((1, 1, 200, 304), np.float32), np.zeros((1, 3, 800, 1216), np.float32)
        openvino = in_openvino("ExperimentalDetectronPriorGridGenerator", 6, [base - 2, features, image], threads,
                               flatten=True, h=0, w=0, stride_x=4.0, stride_y=4.0)  # fmt: skip
        rivals = {"torch formulation": with_torch(formulation),
                  "OpenVINO ExperimentalDetectronPriorGridGenerator": openvino}  # fmt: skip
        return Contest(ours, rivals, 9 * 200 * 304 * 16)

    return Case("grid_priors", "9 anchors, 200x304", make)


def rotated_feature_align() -> Case:
    def make(threads: int) -> Contest:
        x, rng = normal(0, 1, 256, 100, 152), np.random.default_rng(12)
        boxes = np.concatenate([rng.uniform(0, 100, (1, 100, 152, 2)), rng.uniform(4, 30, (1, 100, 152, 2)),
                                rng.uniform(-3, 3, (1, 100, 152, 1))], -1).astype(np.float32)  # fmt: skip
        ours = session("mmcv::MMCVRotatedFeatureAlign", {"x": x, "boxes": boxes}, threads,
                       attributes={"spatial_scale": 1.0, "points": 5})  # fmt: skip
        return Contest(ours, {}, bytes_of(x) * 2 + bytes_of(boxes))

    return Case("rotated_feature_align", "256x100x152, 5 points", make)


def carafe() -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 1, 256, 50, 76)
        masks = torch.randn(1, 25, 100, 152, generator=torch.Generator().manual_seed(1)).softmax(1).numpy()
        ours = session("mmcv::MMCVCARAFE", {"x": x, "m": masks}, threads,
                       attributes={"kernel_size": 5, "group_size": 1, "scale_factor": 2.0})  # fmt: skip
        tx, tm = torch.from_numpy(x), torch.from_numpy(masks)

        def formulation() -> torch.Tensor:
            windows = F.unfold(tx, 5, padding=2).view(1, 256, 25, 50, 1, 76, 1)
            return (windows * tm.view(1, 1, 25, 50, 2, 76, 2)).sum(2).view(1, 256, 100, 152)

        def at_once() -> torch.Tensor:
            windows = F.unfold(tx, 5, padding=2).view(256, 25, 50, 76)
            return torch.einsum("ckhw,khiwj->chiwj", windows, tm.view(25, 50, 2, 76, 2)).reshape(1, 256, 100, 152)

        rivals = {"torch formulation": with_torch(formulation), "torch einsum": with_torch(at_once)}
        return Contest(ours, rivals, 5 * bytes_of(x) + bytes_of(masks))

    return Case("carafe", "x2 of 256x50x76, k 5", make)


def psa_mask(kind: int) -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 1, 59 * 59, 30, 30)
        ours = session("mmcv::MMCVPSAMask", {"x": x}, threads, attributes={"psa_type": kind, "mask_size": [59, 59]})
        theirs = in_torch("psa_mask", x, psa_type=("collect", "distribute")[kind], mask_size=[59, 59])
        return Contest(ours, {"torch formulation": theirs}, 2 * 4 * 900.0 * 900, tolerance=0)

    return Case("psa_mask", f"{('collect', 'distribute')[kind]}, 59x59 of 30x30", make)


CASES = [
    *(cumulative(name, dim) for name in ("cummax", "cummin") for dim in range(3)),
    *(running("CumSum", dim) for dim in range(3)),
    running("CumProd", 2),
    *(corner_pool(mode) for mode in range(4)),
    instance_norm(),
    scatter_nd(),
    gather_topk(),
    grid_priors(),
    rotated_feature_align(),
    carafe(),
    psa_mask(0),
    psa_mask(1),
]
