# SPDX-License-Identifier: Apache-2.0
"""Pooling of regions."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from harness import Case, Contest, Run, bytes_of, in_openvino, normal, session, with_torch

from polyop import formulas


def rois_of(count: int, width: int, height: int, scale: float, seed: int = 1) -> np.ndarray:
    """Returns boxes of 16 to 400 pixels inside the image, batch index 0."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(16, 400, (count, 2))
    corner = rng.uniform(0, 1, (count, 2)) * np.maximum([width / scale, height / scale] - size, 1)
    return np.concatenate([np.zeros((count, 1)), corner, corner + size], 1).astype(np.float32)


def roi_align(channels: int, height: int, width: int, rois: int, bins: int) -> Case:
    def make(threads: int) -> Contest:
        x, boxes = normal(0, 1, channels, height, width), rois_of(rois, width, height, 0.25)
        common = {
            "output_height": bins,
            "output_width": bins,
            "spatial_scale": 0.25,
            "sampling_ratio": 2,
            "mode": "avg",
        }
        ours = session("mmcv::MMCVRoiAlign", {"x": x, "rois": boxes}, threads, attributes={**common, "aligned": 1})
        built_in = session(
            "RoiAlign", {"x": x, "rois": boxes[:, 1:].copy(), "batch": np.zeros(rois, np.int64)}, threads,
            opset=16, attributes={**common, "coordinate_transformation_mode": "half_pixel"},
        )  # fmt: skip
        openvino = in_openvino(
            "ROIAlign", 9, [x, boxes[:, 1:].copy(), np.zeros(rois, np.int32)], threads, pooled_h=bins, pooled_w=bins,
            sampling_ratio=2, spatial_scale=0.25, mode="avg", aligned_mode="half_pixel_for_nn",
        )  # fmt: skip
        moved = bytes_of(x) + rois * channels * bins * bins * 4
        return Contest(ours, {"ONNX Runtime RoiAlign": built_in, "OpenVINO ROIAlign": openvino}, moved)

    return Case("roi_align", f"{channels}x{height}x{width}, {rois} rois, {bins}x{bins}", make)


def tensorrt_roi_align() -> Case:
    def make(threads: int) -> Contest:
        x, boxes = normal(0, 1, 256, 200, 304), rois_of(1000, 304, 200, 0.25)[:, 1:].copy()
        common = {"output_height": 7, "output_width": 7, "spatial_scale": 0.25, "sampling_ratio": 2}
        feeds = {"x": x, "rois": boxes, "batch": np.zeros(1000, np.int32)}
        ours = session(
            "TRT::ROIAlign_TRT", feeds, threads, attributes={**common, "mode": 0, "coordinate_transformation_mode": 1}
        )
        built_in = session(
            "RoiAlign", {**feeds, "batch": np.zeros(1000, np.int64)}, threads, opset=16,
            attributes={**common, "mode": "max", "coordinate_transformation_mode": "half_pixel"},
        )  # fmt: skip
        # OpenVINO's ROIAlign defines the maximum differently.
        return Contest(ours, {"ONNX Runtime RoiAlign": built_in}, bytes_of(x) + 1000 * 256 * 49 * 4)

    return Case("tensorrt_roi_align", "256x200x304, 1000 rois, 7x7, maximum", make)


def roi_align_rotated() -> Case:
    def make(threads: int) -> Contest:
        x, boxes = normal(0, 1, 256, 200, 304), rois_of(1000, 304, 200, 0.25)
        centre, size = (boxes[:, 1:3] + boxes[:, 3:]) / 2, boxes[:, 3:] - boxes[:, 1:3]
        angle = np.random.default_rng(2).uniform(-3, 3, (1000, 1))
        rotated = np.concatenate([boxes[:, :1], centre, size, angle], 1).astype(np.float32)
        attributes = {
            "output_height": 7,
            "output_width": 7,
            "spatial_scale": 0.25,
            "sampling_ratio": 2,
            "aligned": 1,
            "clockwise": 0,
        }
        ours = session("mmcv::MMCVRoIAlignRotated", {"x": x, "rois": rotated}, threads, attributes=attributes)
        feeds = [x, rotated[:, 1:].copy(), np.zeros(1000, np.int32)]
        openvino = in_openvino("ROIAlignRotated", 15, feeds, threads, pooled_h=7, pooled_w=7, sampling_ratio=2,
                               spatial_scale=0.25, clockwise_mode=False)  # fmt: skip
        return Contest(ours, {"OpenVINO ROIAlignRotated": openvino}, bytes_of(x) + 1000 * 256 * 49 * 4)

    return Case("roi_align_rotated", "256x200x304, 1000 rois, 7x7", make, {"MMCV (elsewhere)": (524, 519)})


def multi_level_roi_align() -> Case:
    def make(threads: int) -> Contest:
        levels = [normal(i, 1, 256, 200 >> i, 304 >> i) for i in range(4)]
        rois = rois_of(1000, 304, 200, 0.25)
        attributes = {
            "output_height": 7, "output_width": 7, "sampling_ratio": 2, "pool_mode": 1, "aligned": 1,
            "featmap_strides": [4.0, 8.0, 16.0, 32.0], "roi_scale_factor": -1.0, "finest_scale": 56,
        }  # fmt: skip
        feats = {f"f{i}": level for i, level in enumerate(levels)}
        ours = session("mmdeploy::MMCVMultiLevelRoiAlign", {"rois": rois, **feats}, threads, attributes=attributes)
        extents = rois[:, 3:] - rois[:, 1:3]
        level = np.clip(np.floor(np.log2(np.sqrt(extents.prod(1)) / 56 + 1e-6)), 0, 3).astype(int)
        parts = []
        for i in range(4):
            mine = np.flatnonzero(level == i)
            run = session(
                "RoiAlign", {"x": levels[i], "rois": rois[mine, 1:].copy(), "b": np.zeros(len(mine), np.int64)}, threads,
                opset=16, attributes={"output_height": 7, "output_width": 7, "sampling_ratio": 2, "mode": "avg",
                                      "spatial_scale": 1 / (4 << i), "coordinate_transformation_mode": "half_pixel"},
            )  # fmt: skip
            parts.append((mine, run))

        def standard() -> list[np.ndarray]:
            result = np.empty((1000, 256, 7, 7), np.float32)
            for mine, run in parts:
                result[mine] = run()[0].numpy()
            return [result]

        extractor = {"output_size": 7, "sampling_ratio": 2, "pyramid_scales": [4, 8, 16, 32], "aligned": True}
        openvino = in_openvino(
            "ExperimentalDetectronROIFeatureExtractor", 6, [rois[:, 1:].copy(), *levels], threads, **extractor
        )
        rivals = {
            "ONNX Runtime RoiAlign per level": standard,
            "OpenVINO ExperimentalDetectronROIFeatureExtractor": openvino,
        }
        return Contest(ours, rivals, bytes_of(*levels) + 1000 * 256 * 49 * 4)

    return Case("multi_level_roi_align", "FPN 256 channels, 4 levels, 1000 rois", make)


def in_torch(operator: str, *inputs: np.ndarray, **attributes: object) -> Run:
    """Returns a run of the operator's formula in torch."""
    tensors = [torch.from_numpy(t) for t in inputs]
    formula = formulas.find(operator).formula
    return with_torch(lambda: formula(*tensors, **attributes).contiguous())


def deform_roi_pool() -> Case:
    def make(threads: int) -> Contest:
        x, rois = normal(0, 1, 256, 200, 304), rois_of(1000, 304, 200, 0.25)
        offset = np.random.default_rng(3).normal(0, 1, (1000, 2, 7, 7)).astype(np.float32)
        attributes = {"pooled_height": 7, "pooled_width": 7, "spatial_scale": 0.25, "gamma": 0.1}
        ours = session("mmcv::MMCVDeformRoIPool", {"x": x, "rois": rois, "o": offset}, threads,
                       attributes={**attributes, "sampling_ratio": 2.0})  # fmt: skip
        tx = torch.from_numpy(x)
        corners, moved = torch.from_numpy(rois[:, 1:]) * 0.25 - 0.5, torch.from_numpy(offset)
        part = (torch.arange(14) + 0.5) / 14

        def formulation() -> torch.Tensor:
            size = corners[:, 2:] - corners[:, :2]
            position = []
            for axis, shape in ((0, (1000, 1, 1, 7, 2)), (1, (1000, 7, 2, 1, 1))):
                at = corners[:, axis, None] + size[:, axis, None] * part
                position.append(
                    at.view(shape) + (0.1 * size[:, axis, None, None] * moved[:, axis])[:, :, None, :, None]
                )
            px, py = torch.broadcast_tensors(*position)  # [R, bin, sample, bin, sample]
            grid = torch.stack([(2 * px.clamp(0, 303) + 1) / 304 - 1, (2 * py.clamp(0, 199) + 1) / 200 - 1], -1)
            sampled = F.grid_sample(tx, grid.view(1, 1000, 196, 2), align_corners=False)
            inside = (px >= -1) & (px <= 304) & (py >= -1) & (py <= 200)
            pooled = (sampled.view(256, 1000, 7, 2, 7, 2) * inside).mean((3, 5))
            return pooled.transpose(0, 1).contiguous()

        return Contest(ours, {"torch formulation": with_torch(formulation)}, bytes_of(x) + 1000 * 256 * 49 * 4,
                       tolerance=1e-3)  # fmt: skip

    return Case("deform_roi_pool", "256x200x304, 1000 rois, 7x7", make)


def prroi_pool() -> Case:
    def make(threads: int) -> Contest:
        x, rois = normal(0, 1, 256, 50, 76), rois_of(500, 76, 50, 0.0625)
        attributes = {"pooled_height": 7, "pooled_width": 7, "spatial_scale": 0.0625}
        ours = session("mmcv::PrRoIPool", {"x": x, "rois": rois}, threads, attributes=attributes)
        return Contest(ours, {"torch formulation": in_torch("prroi_pool", x, rois, **attributes)},
                       bytes_of(x) + 500 * 256 * 49 * 4)  # fmt: skip

    return Case("prroi_pool", "256x50x76, 500 rois, 7x7", make)


def roi_pool() -> Case:
    def make(threads: int) -> Contest:
        feeds = {"x": normal(0, 1, 256, 50, 76), "rois": rois_of(500, 76, 50, 0.0625)}
        ours = session("polyop::RoIPool", feeds, threads, outputs=("y", "argmax"),
                       attributes={"output_height": 7, "output_width": 7, "spatial_scale": 0.0625})  # fmt: skip
        built_in = session("MaxRoiPool", feeds, threads, attributes={"pooled_shape": [7, 7], "spatial_scale": 0.0625})
        openvino = in_openvino("ROIPooling", 2, list(feeds.values()), threads, output_roi=[7, 7], spatial_scale=0.0625,
                               method="max")  # fmt: skip
        rivals = {"ONNX Runtime MaxRoiPool": built_in, "OpenVINO ROIPooling": openvino}
        return Contest(ours, rivals, bytes_of(feeds["x"]) + 2 * 500 * 256 * 49 * 4,
                       same=lambda a, b: np.array_equal(a[0], b[0]))  # fmt: skip

    return Case("roi_pool", "256x50x76, 500 rois, 7x7", make)


def riroi_align_rotated() -> Case:
    def make(threads: int) -> Contest:
        x, rois = normal(0, 1, 256, 50, 76), rois_of(500, 76, 50, 0.0625)
        centre, size = (rois[:, 1:3] + rois[:, 3:]) / 2, rois[:, 3:] - rois[:, 1:3]
        angle = np.random.default_rng(4).uniform(-3, 3, (500, 1))
        rotated = np.concatenate([rois[:, :1], centre, size, angle], 1).astype(np.float32)
        attributes = {
            "pooled_height": 7,
            "pooled_width": 7,
            "spatial_scale": 0.0625,
            "num_samples": 2,
            "num_orientations": 8,
        }
        ours = session("polyop::RiRoIAlignRotated", {"x": x, "rois": rotated}, threads, attributes=attributes)
        rival = in_torch("riroi_align_rotated", x, rotated, **attributes, clockwise=0)
        return Contest(ours, {"torch formulation": rival}, bytes_of(x) + 500 * 256 * 49 * 4, tolerance=1e-3)

    return Case("riroi_align_rotated", "256x50x76, 500 rois, 7x7, 8 orientations", make)


def bezier_align() -> Case:
    def make(threads: int) -> Contest:
        x, rois = normal(0, 1, 256, 160, 160), rois_of(100, 160, 160, 0.25)
        left, top, right, bottom = rois[:, 1:].T
        across = [left + (right - left) * part for part in (0, 1 / 3, 2 / 3, 1)]
        bent = [top + (bottom - top) * part for part in (0.3, 0.0, 0.0, 0.3)]
        points = [
            *zip(across, bent, strict=True),
            *((a, b + (bottom - top) * 0.7) for a, b in zip(across[::-1], bent[::-1], strict=True)),
        ]
        curves = np.stack([rois[:, 0], *(v for point in points for v in point)], 1).astype(np.float32)
        attributes = {"output_height": 8, "output_width": 32, "spatial_scale": 0.25, "sampling_ratio": 1, "aligned": 1}
        ours = session("polyop::BezierAlign", {"x": x, "rois": curves}, threads, attributes=attributes)
        return Contest(ours, {"torch formulation": in_torch("bezier_align", x, curves, **attributes)},
                       bytes_of(x) + 100 * 256 * 256 * 4, tolerance=1e-3)  # fmt: skip

    return Case("bezier_align", "256x160x160, 100 curves, 8x32", make)


def border_align() -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 1, 1024, 50, 76)
        boxes = rois_of(50 * 76, 76, 50, 0.0625)[None, :, 1:] * np.float32(0.0625)
        ours = session("mmcv::MMCVBorderAlign", {"x": x, "boxes": boxes}, threads, attributes={"pool_size": 10})
        tx, tb = torch.from_numpy(x), torch.from_numpy(boxes)[0]

        def formulation() -> torch.Tensor:
            part = torch.arange(11) / 10
            start, way = tb.view(-1, 2, 1, 2), (tb[:, 2:] - tb[:, :2]).view(-1, 1, 1, 2)
            along = torch.stack([part[:, None] * torch.tensor([1.0, 0]), part[:, None] * torch.tensor([0, 1.0])])
            coordinates = [start[:, end] + sign * way[:, 0] * along[axis]
                    for end, sign in ((0, 1), (1, -1)) for axis in (0, 1)]  # fmt: skip
            position = torch.stack(coordinates).clamp(torch.zeros(2), torch.tensor([75.0, 49]))
            grid = (2 * position + 1) / torch.tensor([76.0, 50]) - 1
            sampled = F.grid_sample(tx.view(4, 256, 50, 76), grid, align_corners=False)
            return sampled.amax(-1).permute(1, 2, 0)[None].contiguous()

        return Contest(ours, {"torch formulation": with_torch(formulation)}, bytes_of(x) * 2, tolerance=1e-3)

    return Case("border_align", "4x256x50x76, 3800 boxes, pool_size 10", make)


CASES = [
    roi_align(256, 200, 304, 1000, 7),
    roi_align(256, 50, 76, 300, 14),
    tensorrt_roi_align(),
    roi_align_rotated(),
    multi_level_roi_align(),
    deform_roi_pool(),
    prroi_pool(),
    roi_pool(),
    riroi_align_rotated(),
    bezier_align(),
    border_align(),
]
