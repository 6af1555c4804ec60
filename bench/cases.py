"""What is measured: every operator at the sizes of real models, against every rival that has it."""

from __future__ import annotations

import boxes3d
import numpy as np
import torch
import torch.nn.functional as F
from harness import Case, Contest, Run, megabytes, normal, session, with_torch
from scipy.spatial import cKDTree

from polyop import formulas

# ---- regions ---------------------------------------------------------------------------------------


def rois_of(count: int, width: int, height: int, scale: float, seed: int = 1) -> np.ndarray:
    """Boxes of 16 to 400 pixels inside the picture, batch 0."""
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
        moved = megabytes(x) + rois * channels * bins * bins * 4
        return Contest(ours, {"ONNX Runtime RoiAlign": built_in}, moved)

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
        return Contest(ours, {"ONNX Runtime RoiAlign": built_in}, megabytes(x) + 1000 * 256 * 49 * 4)

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
        return Contest(ours, {}, megabytes(x) + 1000 * 256 * 49 * 4)

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

        return Contest(ours, {"ONNX Runtime RoiAlign per level": standard}, megabytes(*levels) + 1000 * 256 * 49 * 4)

    return Case("multi_level_roi_align", "FPN 256 channels, 4 levels, 1000 rois", make)


def in_torch(operator: str, *inputs: np.ndarray, **attributes: object) -> Run:
    """The operator's formula in torch."""
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
            place = []
            for axis, shape in ((0, (1000, 1, 1, 7, 2)), (1, (1000, 7, 2, 1, 1))):
                at = corners[:, axis, None] + size[:, axis, None] * part
                place.append(at.view(shape) + (0.1 * size[:, axis, None, None] * moved[:, axis])[:, :, None, :, None])
            px, py = torch.broadcast_tensors(*place)  # [R, bin, sample, bin, sample]
            grid = torch.stack([(2 * px.clamp(0, 303) + 1) / 304 - 1, (2 * py.clamp(0, 199) + 1) / 200 - 1], -1)
            sampled = F.grid_sample(tx, grid.view(1, 1000, 196, 2), align_corners=False)
            inside = (px >= -1) & (px <= 304) & (py >= -1) & (py <= 200)
            pooled = (sampled.view(256, 1000, 7, 2, 7, 2) * inside).mean((3, 5))
            return pooled.transpose(0, 1).contiguous()

        return Contest(ours, {"torch formulation": with_torch(formulation)}, megabytes(x) + 1000 * 256 * 49 * 4,
                       tolerance=1e-3)  # fmt: skip

    return Case("deform_roi_pool", "256x200x304, 1000 rois, 7x7", make)


def prroi_pool() -> Case:
    def make(threads: int) -> Contest:
        x, rois = normal(0, 1, 256, 50, 76), rois_of(500, 76, 50, 0.0625)
        attributes = {"pooled_height": 7, "pooled_width": 7, "spatial_scale": 0.0625}
        ours = session("mmcv::PrRoIPool", {"x": x, "rois": rois}, threads, attributes=attributes)
        return Contest(ours, {"torch formulation": in_torch("prroi_pool", x, rois, **attributes)},
                       megabytes(x) + 500 * 256 * 49 * 4)  # fmt: skip

    return Case("prroi_pool", "256x50x76, 500 rois, 7x7", make)


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
            made = [start[:, end] + sign * way[:, 0] * along[axis]
                    for end, sign in ((0, 1), (1, -1)) for axis in (0, 1)]  # fmt: skip
            place = torch.stack(made).clamp(torch.zeros(2), torch.tensor([75.0, 49]))
            grid = (2 * place + 1) / torch.tensor([76.0, 50]) - 1
            sampled = F.grid_sample(tx.view(4, 256, 50, 76), grid, align_corners=False)
            return sampled.amax(-1).permute(1, 2, 0)[None].contiguous()

        return Contest(ours, {"torch formulation": with_torch(formulation)}, megabytes(x) * 2, tolerance=1e-3)

    return Case("border_align", "4x256x50x76, 3800 boxes, pool_size 10", make)


# ---- grids -----------------------------------------------------------------------------------------

MODES = ("bilinear", "nearest", "bicubic")


def grid_sampler(mode: int, smooth: bool) -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 1, 64, 256, 256)
        if smooth:
            angle = torch.tensor([[[0.9, 0.2, 0.05], [-0.2, 0.9, 0.0]]])
            grid = F.affine_grid(angle, [1, 64, 256, 256], align_corners=False).numpy()
        else:
            grid = np.random.default_rng(1).uniform(-1, 1, (1, 256, 256, 2)).astype(np.float32)
        ours = session("mmcv::grid_sampler", {"x": x, "grid": grid}, threads,
                       attributes={"interpolation_mode": mode, "padding_mode": 0, "align_corners": 0})  # fmt: skip
        built_in = session("GridSample", {"x": x, "grid": grid}, threads, opset=20,
                           attributes={"mode": ("linear", "nearest", "cubic")[mode], "padding_mode": "zeros", "align_corners": 0})  # fmt: skip
        tx, tg = torch.from_numpy(x), torch.from_numpy(grid)
        theirs = with_torch(lambda: F.grid_sample(tx, tg, MODES[mode], "zeros", align_corners=False))
        same = nearly_all_equal if mode == 1 else None
        return Contest(
            ours,
            {"ONNX Runtime GridSample": built_in, "torch grid_sample": theirs},
            2 * megabytes(x),
            same=same,
            tolerance=1e-3,
        )

    return Case("grid_sampler", f"{MODES[mode]}, 64x256x256, {'smooth' if smooth else 'random'} grid", make)


def nearly_all_equal(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    """Nearest: coordinates on the border of two pixels may be rounded apart; no more than 1 in 10,000."""
    return float((ours[0] != theirs[0]).mean()) < 1e-4


def grid_sampler_3d() -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 1, 16, 32, 64, 64)
        grid = np.random.default_rng(1).uniform(-1, 1, (1, 32, 64, 64, 3)).astype(np.float32)
        ours = session("mmcv::grid_sampler", {"x": x, "grid": grid}, threads,
                       attributes={"interpolation_mode": 0, "padding_mode": 0, "align_corners": 0})  # fmt: skip
        built_in = session(
            "GridSample",
            {"x": x, "grid": grid},
            threads,
            opset=20,
            attributes={"mode": "linear", "padding_mode": "zeros"},
        )
        tx, tg = torch.from_numpy(x), torch.from_numpy(grid)
        theirs = with_torch(lambda: F.grid_sample(tx, tg, "bilinear", "zeros", align_corners=False))
        return Contest(
            ours, {"ONNX Runtime GridSample": built_in, "torch grid_sample": theirs}, 2 * megabytes(x), tolerance=1e-3
        )

    return Case("grid_sampler", "trilinear, 16x32x64x64, random grid", make)


def resize(channels: int, height: int, width: int) -> Case:
    def make(threads: int) -> Contest:
        x, scales = normal(0, 1, channels, height, width), np.array([1, 1, 3, 3], np.float32)
        ours = session("Just_A_Scope_Name::DynamicTRTResize", {"x": x, "scales": scales}, threads)
        built_in = session("Resize", {"x": x, "roi": None, "scales": scales}, threads, opset=18,
                           attributes={"mode": "cubic", "cubic_coeff_a": -0.75, "coordinate_transformation_mode": "half_pixel"})  # fmt: skip
        tx = torch.from_numpy(x)
        theirs = with_torch(lambda: F.interpolate(tx, scale_factor=3, mode="bicubic", align_corners=False))
        return Contest(
            ours, {"ONNX Runtime Resize": built_in, "torch interpolate": theirs}, 10 * megabytes(x), tolerance=1e-3
        )

    return Case("dynamic_resize", f"bicubic x3 of {channels}x{height}x{width}", make)


def bicubic_interpolate() -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 1, 3, 360, 640)
        feeds = {"x": x}
        ours = session("mmdeploy::TRTBicubicInterpolate", feeds, threads,
                       attributes={"scale_factor": [2.0, 2.0], "align_corners": 1})  # fmt: skip
        tx = torch.from_numpy(x)
        theirs = with_torch(lambda: F.interpolate(tx, scale_factor=2, mode="bicubic", align_corners=True))
        return Contest(ours, {"torch interpolate": theirs}, 5 * megabytes(x), tolerance=1e-3)

    return Case("bicubic_interpolate", "x2 of 3x360x640, align_corners", make)


# ---- suppression -----------------------------------------------------------------------------------


def boxes_of(kind: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Boxes around few centres, over all the picture, or nearly disjoint; scores without ties."""
    rng = np.random.default_rng(3)
    if kind == "clustered":
        centre = rng.uniform(0, 1000, (count // 100, 2)).repeat(100, 0) + rng.normal(0, 6, (count // 100 * 100, 2))
        size = rng.uniform(40, 80, (len(centre), 2))
    else:
        centre = rng.uniform(0, 1000 if kind == "spread" else 10000, (count, 2))
        size = rng.uniform(10, 60, (count, 2))
    boxes = np.concatenate([centre - size / 2, centre + size / 2], 1).astype(np.float32)
    return boxes, (rng.permutation(len(boxes)) / len(boxes)).astype(np.float32)


def nms(kind: str) -> Case:
    def make(threads: int) -> Contest:
        boxes, scores = boxes_of(kind, 10000)
        ours = session(
            "mmcv::NonMaxSuppression",
            {"boxes": boxes, "scores": scores},
            threads,
            attributes={"iou_threshold": 0.5, "offset": 0},
        )
        feeds = {"b": boxes[None], "s": scores[None, None], "n": np.array([10000]), "iou": np.array([0.5], np.float32)}
        built_in = session("NonMaxSuppression", feeds, threads, opset=11)
        return Contest(ours, {"ONNX Runtime NonMaxSuppression": built_in}, megabytes(boxes, scores),
                       same=lambda a, b: np.array_equal(a[0], b[0][:, 2]))  # fmt: skip

    return Case("nms", f"10,000 {kind} boxes", make)


def soft_nms(method: int) -> Case:
    def make(threads: int) -> Contest:
        boxes, scores = boxes_of("clustered", 5000)
        attributes = {"iou_threshold": 0.3, "sigma": 0.5, "min_score": 1e-3, "method": method, "offset": 0}
        ours = session(
            "mmcv::SoftNonMaxSuppression",
            {"boxes": boxes, "scores": scores},
            threads,
            ["dets", "keep"],
            attributes=attributes,
        )
        return Contest(ours, {}, megabytes(boxes, scores))

    name = ("naive", "linear", "gaussian")[method]
    return Case("soft_nms", f"5,000 boxes, {name}", make, {"MMCV (elsewhere)": ((56, 56), (78, 78))[method - 1]})


def rotated_boxes_of(kind: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    boxes, scores = boxes_of(kind, count)
    angle = np.random.default_rng(4).uniform(-np.pi, np.pi, (len(boxes), 1))
    middle, size = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    return np.concatenate([middle, size * [1, 0.5], angle], 1).astype(np.float32), scores


def nms_rotated(kind: str, elsewhere: float) -> Case:
    def make(threads: int) -> Contest:
        boxes, scores = rotated_boxes_of(kind, 2000)
        feeds = {"boxes": boxes[None], "scores": scores[None, None]}
        attributes = {"iou_threshold": 0.5, "score_threshold": -1.0}
        ours = session("mmdeploy::NMSRotated", feeds, threads, attributes=attributes)
        return Contest(ours, {}, megabytes(boxes, scores))

    return Case("nms_rotated", f"2,000 {kind} boxes", make, {"MMDeploy (elsewhere)": (elsewhere, elsewhere)})


def nms_match(kind: str, elsewhere: float) -> Case:
    def make(threads: int) -> Contest:
        boxes, scores = boxes_of(kind, 2000)
        feeds = {"boxes": boxes[None], "scores": scores[None, None]}
        thresholds = {"iou": np.array([0.5], np.float32), "score": np.array([0], np.float32)}
        ours = session("mmdeploy::NMSMatch", {**feeds, **thresholds}, threads)
        return Contest(ours, {}, megabytes(boxes, scores))

    return Case("nms_match", f"2,000 {kind} boxes", make, {"MMDeploy (elsewhere)": (elsewhere, elsewhere)})


def batched_nms() -> Case:
    """A detector's head: 8,400 boxes, 80 classes, most scores low, at most 100 detections of a picture."""

    def make(threads: int) -> Contest:
        rng = np.random.default_rng(5)
        boxes, _ = boxes_of("spread", 8400)
        scores = (rng.random((1, 8400, 80)) ** 8).astype(np.float32)
        attributes = {
            "background_label_id": -1, "num_classes": 80, "topk": 1000, "keep_topk": 100, "score_threshold": 0.25,
            "iou_threshold": 0.5, "is_normalized": 0, "clip_boxes": 0,
        }  # fmt: skip
        feeds = {"boxes": boxes[None, :, None], "scores": scores}
        ours = session("mmdeploy::TRTBatchedNMS", feeds, threads, ["dets", "labels"], attributes=attributes)
        by_class = np.ascontiguousarray(scores.transpose(0, 2, 1))
        feeds = {"b": boxes[None], "s": by_class, "n": np.array([1000]), "iou": np.array([0.5], np.float32),
                 "t": np.array([0.25], np.float32)}  # fmt: skip
        suppress = session("NonMaxSuppression", feeds, threads, opset=11)

        def standard() -> list[np.ndarray]:
            rows = suppress()[0].numpy()
            score = by_class[0, rows[:, 1], rows[:, 2]]
            best = np.argsort(-score, kind="stable")[:100]
            return [np.concatenate([boxes[rows[best, 2]], score[best, None]], 1)[None]]

        return Contest(ours, {"ONNX Runtime NonMaxSuppression + top k": standard}, megabytes(boxes, scores),
                       same=lambda a, b: np.array_equal(a[0], b[0]))  # fmt: skip

    return Case("batched_nms", "8,400 boxes x 80 classes, 100 detections", make)


def efficient_nms() -> Case:
    """The same head, with the detections of all classes in one walk."""

    def make(threads: int) -> Contest:
        rng = np.random.default_rng(5)
        boxes, _ = boxes_of("spread", 8400)
        scores = (rng.random((1, 8400, 80)) ** 8).astype(np.float32)
        attributes = {
            "score_threshold": 0.25, "iou_threshold": 0.5, "max_output_boxes": 100, "background_class": -1,
            "score_activation": 0, "box_coding": 0,
        }  # fmt: skip
        names = ["num", "boxes", "scores", "classes"]
        ours = session("TRT::EfficientNMS_TRT", {"b": boxes[None], "s": scores}, threads, names, attributes=attributes)
        by_class = np.ascontiguousarray(scores.transpose(0, 2, 1))
        feeds = {"b": boxes[None], "s": by_class, "n": np.array([100]), "iou": np.array([0.5], np.float32),
                 "t": np.array([0.25], np.float32)}  # fmt: skip
        suppress = session("NonMaxSuppression", feeds, threads, opset=11)

        def standard() -> list[np.ndarray]:
            rows = suppress()[0].numpy()
            score = by_class[0, rows[:, 1], rows[:, 2]]
            return [boxes[rows[np.argsort(-score, kind="stable")[:100], 2]]]

        return Contest(ours, {"ONNX Runtime NonMaxSuppression + top k": standard}, megabytes(boxes, scores),
                       same=lambda a, b: np.array_equal(a[1][0], b[0]))  # fmt: skip

    return Case("efficient_nms", "8,400 boxes x 80 classes, 100 detections", make)


# ---- bird's eye views ------------------------------------------------------------------------------


def bev_ranks(points: int, cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A cell for each of `points` points, cell by cell, and where each cell's points begin and how many they are."""
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
        cell, starts, lengths = bev_ranks(180_000, 128 * 128)
        of_depth = rng.permutation(depth.size)[: len(cell)].astype(np.int32)
        pixel = (of_depth // (59 * 16 * 44) * (16 * 44) + of_depth % (16 * 44)).astype(np.int32)
        feeds = {"depth": depth, "feat": feat, "d": of_depth, "f": pixel, "b": cell, "s": starts, "l": lengths}
        size = {"out_height": 128, "out_width": 128}
        ours = session("mmdeploy::bev_pool_v2", feeds, threads, attributes=size)
        td, tf, di, fi, bi = (torch.from_numpy(t) for t in (depth.ravel(), feat.reshape(-1, 80), of_depth, pixel, cell))

        def formulation() -> torch.Tensor:
            return torch.zeros(128 * 128, 80).index_add_(0, bi, td[di, None] * tf[fi]).view(1, 128, 128, 80)

        moved = megabytes(depth, feat, of_depth, pixel) + 128 * 128 * 80 * 4
        return Contest(ours, {"torch index_add": with_torch(formulation)}, moved, tolerance=1e-3)

    return Case("bev_pool", "6 cameras, 180,000 points, 80 channels, 128x128", make)


def quick_cumsum() -> Case:
    def make(threads: int) -> Contest:
        cell, starts, lengths = bev_ranks(300_000, 360 * 360)
        x = normal(10, len(cell), 80)
        place = np.stack([cell // 360, cell % 360, cell * 0, cell * 0], 1).astype(np.int32)
        size = {"batch_size": 1, "dimension": 1, "height": 360, "width": 360}
        ours = session(
            "autoware::QuickCumsumCuda", {"x": x, "g": place, "l": lengths, "s": starts}, threads, attributes=size
        )
        tx, tc = torch.from_numpy(x), torch.from_numpy(cell)

        def formulation() -> torch.Tensor:
            return torch.zeros(360 * 360, 80).index_add_(0, tc, tx).view(1, 1, 360, 360, 80)

        moved = megabytes(x) + 360 * 360 * 80 * 4
        return Contest(ours, {"torch index_add": with_torch(formulation)}, moved, tolerance=1e-3)

    return Case("quick_cumsum", "300,000 points, 80 channels, 360x360", make)


# ---- sparse convolution ----------------------------------------------------------------------------

SPARSE_SHAPE = (41, 1440, 1440)


def lidar_voxels(count: int) -> np.ndarray:
    """Those nearest to the sensor of a street: ground that rises and falls, and the sides of 150 cars and walls."""
    rng = np.random.default_rng(31)
    radius, angle = 45 * rng.random(6 * count), 2 * np.pi * rng.random(6 * count)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    z = 0.3 * np.sin(x / 15) + 0.2 * np.cos(y / 11) + rng.normal(0, 0.02, 6 * count)
    parts = [np.stack([z, y, x], 1)]
    for _ in range(150):
        size = rng.uniform([1.5, 0.6, 0.6], [2.2, 4.5, 2.0])
        points, side = rng.random((600, 3)), rng.integers(0, 3, 600)
        points[np.arange(600), side] = np.round(points[np.arange(600), side])
        parts.append(points * size + np.concatenate([[0], rng.uniform(-60, 60, 2)]))
    cells = ((np.concatenate(parts) + np.array([3, 72, 72])) / [0.2, 0.1, 0.1]).astype(np.int32)
    cells = np.unique(cells[((cells >= 0) & (cells < SPARSE_SHAPE)).all(1)], axis=0)
    nearest = np.argsort(np.hypot(cells[:, 1] - 720, cells[:, 2] - 720), kind="stable")[:count]
    return np.concatenate([np.zeros((count, 1), np.int32), cells[rng.permutation(nearest)]], 1).astype(np.int32)


def sparse_attributes(subm: bool) -> dict[str, object]:
    step = {"stride": [1, 1, 1]} if subm else {"stride": [2, 2, 2], "padding": [1, 1, 1]}
    return {"batch_size": 1, "spatial_shape": list(SPARSE_SHAPE), "ksize": [3, 3, 3], "subm": int(subm), **step}


def submanifold_table(voxels: np.ndarray) -> np.ndarray:
    """By torch: each of the 27 neighbours is searched for among the sorted cells."""
    cells = torch.from_numpy(voxels[:, 1:].astype(np.int64)) + 1
    extents = [n + 2 for n in SPARSE_SHAPE]
    strides = torch.tensor([extents[1] * extents[2], extents[2], 1])
    keys = (cells * strides).sum(1)
    ordered, rows = keys.sort()
    steps = torch.cartesian_prod(*[torch.arange(-1, 2)] * 3)
    wanted = keys + (steps * strides).sum(1)[:, None]
    at = torch.searchsorted(ordered, wanted).clamp_(max=len(keys) - 1)
    return torch.where(ordered[at] == wanted, rows[at], -1).int().numpy()


def sparse_pairs(operator: str, subm: bool) -> Case:
    implicit = operator.endswith("implicit_gemm")
    name, outputs = ("GetIndicePairsImplicitGemm", 5) if implicit else ("GetIndicePairs", 4)

    def make(threads: int) -> Contest:
        voxels = lidar_voxels(60_000)
        names = [f"y{o}" for o in range(outputs)]
        ours = session(f"autoware::{name}", {"indices": voxels}, threads, names, attributes=sparse_attributes(subm))
        rivals = {"torch sort + searchsorted": lambda: [submanifold_table(voxels)]} if subm and implicit else {}
        moved = megabytes(voxels) * 2 + 27 * 60_000 * (4 if implicit else 8)
        return Contest(ours, rivals, moved, same=lambda a, b: np.array_equal(a[1], b[0]))

    return Case(operator, f"60,000 voxels, 3x3x3, {'submanifold' if subm else 'stride 2'}", make)


def sparse_products(operator: str) -> Case:
    """SubMConv3d of 64 to 64 channels: against the same products by torch, and one matrix product of as many."""

    def make(threads: int) -> Contest:
        voxels, channels = lidar_voxels(60_000), 64
        features, filters = normal(32, len(voxels), channels), normal(33, channels, 3, 3, 3, channels) / 20
        table = submanifold_table(voxels)
        feeds = {"features": features, "filters": filters}
        if operator == "implicit_gemm":
            order = np.arange(len(voxels), dtype=np.int32)
            feeds |= {"pairs": table, "mask": np.zeros((len(voxels), 1), np.int32), "order": order}
            ours = session("autoware::ImplicitGemm", feeds, threads, attributes={"is_subm": 1})
        else:
            lists = session("autoware::GetIndicePairs", {"indices": voxels}, threads, ["c", "p", "n", "o"],
                            attributes=sparse_attributes(True))  # fmt: skip
            made = [value.numpy() for value in lists()]
            feeds |= {"pairs": made[1], "counts": made[2], "number": made[3]}
            ours = session("autoware::IndiceConv", feeds, threads, attributes={"is_subm": 1})
        tf, tw = torch.from_numpy(features), torch.from_numpy(filters).view(channels, 27, channels)
        weights = [tw[:, k].T.contiguous() for k in range(27)]
        outs = [torch.from_numpy(np.nonzero(table[k] >= 0)[0]) for k in range(27)]
        ins = [torch.from_numpy(table[k][table[k] >= 0].astype(np.int64)) for k in range(27)]

        def formulation() -> torch.Tensor:
            out = torch.zeros(len(voxels), channels)
            for k in range(27):
                out.index_add_(0, outs[k], tf[ins[k]] @ weights[k])
            return out

        pairs = int((table >= 0).sum())
        many, once = torch.randn(pairs, channels), torch.empty(pairs, channels)
        product = with_torch(lambda: torch.mm(many, weights[0], out=once))
        return Contest(
            ours, {"torch index_select + mm + index_add": with_torch(formulation)}, megabytes(features, filters, features),
            2.0 * pairs * channels * channels, tolerance=1e-3, yardstick=("torch.mm of as many products", product),
        )  # fmt: skip

    return Case(operator, "60,000 voxels, 3x3x3, submanifold, 64 to 64 channels", make)


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

        moved = megabytes(features) + 64 * 496 * 432 * 4
        return Contest(ours, {"torch index_put": with_torch(formulation)}, moved)

    return Case("pillar_scatter", "12,000 pillars, 64 channels, 496x432", make)


# ---- deformable ------------------------------------------------------------------------------------


def deform_conv(modulated: bool) -> Case:
    def make(threads: int) -> Contest:
        rng = np.random.default_rng(6)
        x, weight = normal(0, 1, 256, 64, 64), normal(1, 256, 256, 3, 3) / 48
        offset = rng.normal(0, 1.5, (1, 18, 64, 64)).astype(np.float32)
        mask = rng.random((1, 9, 64, 64)).astype(np.float32) if modulated else np.ones((1, 9, 64, 64), np.float32)
        attributes = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 1, "deform_groups": 1}
        if modulated:
            ours = session(
                "mmcv::MMCVModulatedDeformConv2d",
                {"x": x, "o": offset, "m": mask, "w": weight},
                threads,
                attributes=attributes,
            )
        else:
            ours = session("mmcv::MMCVDeformConv2d", {"x": x, "o": offset, "w": weight}, threads, attributes=attributes)
        built_in = session(
            "DeformConv", {"x": x, "w": weight, "o": offset, "b": None, "m": mask if modulated else None}, threads, opset=19,
            attributes={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "offset_group": 1},
        )  # fmt: skip
        convolution = session("Conv", {"x": x, "w": weight}, threads, attributes={"pads": [1, 1, 1, 1]})
        return Contest(
            ours,
            {"ONNX Runtime DeformConv": built_in},
            tolerance=1e-3,
            yardstick=("ONNX Runtime Conv", convolution),
        )

    return Case("modulated_deform_conv2d" if modulated else "deform_conv2d", "256x64x64, 256 filters 3x3", make)


def attend_by_grids(
    value: torch.Tensor, shapes: np.ndarray, locations: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Deformable attention of one picture by a grid_sample a level: [1, M, Q, D]."""
    heads, size, queries = *value.shape[2:], locations.shape[1]
    grids, samples = 2 * locations - 1, []
    for i, part in enumerate(value.split([int(a) for a in shapes.prod(1)], 1)):
        h, w = (int(e) for e in shapes[i])
        image = part.flatten(2).transpose(1, 2).reshape(heads, size, h, w)
        grid = grids[:, :, :, i].transpose(1, 2).flatten(0, 1)
        samples.append(F.grid_sample(image, grid, "bilinear", "zeros", align_corners=False))
    factor = weights.transpose(1, 2).reshape(heads, 1, queries, -1)
    return (torch.stack(samples, -2).flatten(-2) * factor).sum(-1).view(1, heads, size, queries).transpose(2, 3)


def flash_deform_attn() -> Case:
    def make(threads: int) -> Contest:
        shapes = np.array([[100, 100], [50, 50], [25, 25], [13, 13]], np.int64)
        starts = np.concatenate([[0], np.cumsum(shapes.prod(1))[:-1]]).astype(np.int64)
        value = normal(0, 1, int(shapes.prod(1).sum()), 8, 32)
        locations = np.random.default_rng(7).uniform(0, 1, (1, 900, 8, 32)).astype(np.float32)
        rows = np.concatenate([locations, normal(8, 1, 900, 8, 16)], -1)
        ours = session(
            "polyop::FlashDeformAttn", {"value": value, "shapes": shapes, "starts": starts, "rows": rows}, threads,
            attributes={"points": 4},
        )  # fmt: skip
        tv, tr = torch.from_numpy(value), torch.from_numpy(rows)

        def formulation() -> torch.Tensor:
            weights = tr[..., 32:].softmax(-1).view(1, 900, 8, 4, 4)
            summed = attend_by_grids(tv, shapes, tr[..., :32].reshape(1, 900, 8, 4, 4, 2), weights)
            return summed.transpose(1, 2).reshape(1, 900, 256)

        return Contest(ours, {"torch formulation": with_torch(formulation)}, megabytes(value, rows) + 900 * 1024,
                       tolerance=1e-3)  # fmt: skip

    return Case("flash_deform_attn", "4 levels, 8 heads x 32, 900 queries", make)


def dcn(version: int) -> Case:
    """A block of InternImage-T's second stage, or of one with more channels."""
    size, groups, depth = (56, 8, 16) if version == 3 else (28, 16, 32)

    def make(threads: int) -> Contest:
        x = normal(0, 1, size, size, groups * depth)
        offset = np.random.default_rng(6).normal(0, 1.5, (1, size, size, groups, 18)).astype(np.float32)
        mask = np.random.default_rng(7).random((1, size, size, groups, 9)).astype(np.float32)
        named = (("kernel", 3), ("stride", 1), ("pad", 1), ("dilation", 1))
        attributes = {f"{name}_{axis}": v for name, v in named for axis in "hw"}
        attributes |= {"group": groups, "group_channels": depth, "offset_scale": 1.0, "remove_center": 0}
        flat = (1, size, size, -1)
        if version == 3:
            feeds = {"x": x, "o": offset.reshape(flat), "m": mask.reshape(flat)}
            ours = session("mmdeploy::TRTDCNv3", feeds, threads, attributes=attributes)
        else:
            feeds = {"x": x, "om": np.concatenate([offset, mask], -1).reshape(flat)}  # a multiple of 8 as it is
            ours = session("polyop::DCNv4", feeds, threads, attributes=attributes)
        tx, to, tm = (torch.from_numpy(t) for t in (x, offset, mask))
        steps = torch.arange(size)
        taps = torch.arange(3) - 1
        column = steps[:, None] + taps.repeat_interleave(3)  # column by column
        row = steps[:, None] + taps.repeat(3)

        def formulation() -> torch.Tensor:
            at = to.view(1, size, size, groups, 9, 2)
            place = torch.stack([at[..., 0] + column[None, :, None], at[..., 1] + row[:, None, None]], -1)
            grid = ((2 * place + 1) / size - 1)[0].permute(2, 0, 1, 3, 4).reshape(groups, size * size, 9, 2)
            images = tx[0].view(size, size, groups, depth).permute(2, 3, 0, 1)
            sampled = F.grid_sample(images, grid, "bilinear", "zeros", align_corners=False)
            weighted = sampled * tm[0].permute(2, 0, 1, 3).reshape(groups, 1, size * size, 9)
            return weighted.sum(-1).view(groups * depth, size, size).permute(1, 2, 0)[None].contiguous()

        return Contest(ours, {"torch formulation": with_torch(formulation)}, 2 * megabytes(x) + megabytes(offset, mask),
                       tolerance=1e-3)  # fmt: skip

    return Case(f"dcn_v{version}", f"{size}x{size}, {groups} groups x {depth}, 3x3", make)


def ms_deform_attn(queries: int | None) -> Case:
    def make(threads: int) -> Contest:
        shapes = np.array([[100, 100], [50, 50], [25, 25], [13, 13]], np.int64)
        starts = np.concatenate([[0], np.cumsum(shapes.prod(1))[:-1]]).astype(np.int64)
        total = int(shapes.prod(1).sum())
        q = queries or total
        rng = np.random.default_rng(7)
        value = normal(0, 1, total, 8, 32)
        locations = rng.uniform(0, 1, (1, q, 8, 4, 4, 2)).astype(np.float32)
        weights = (
            torch.from_numpy(rng.standard_normal((1, q, 8, 16))).softmax(-1).reshape(1, q, 8, 4, 4).float().numpy()
        )
        ours = session(
            "mmdeploy::MMCVMultiScaleDeformableAttention",
            {"value": value, "shapes": shapes, "starts": starts, "locations": locations, "weights": weights}, threads,
        )  # fmt: skip
        tv, tl, tw = (torch.from_numpy(t) for t in (value, locations, weights))

        def formulation() -> torch.Tensor:
            return attend_by_grids(tv, shapes, tl, tw).transpose(1, 2).reshape(1, q, 256)

        return Contest(
            ours,
            {"torch formulation": with_torch(formulation)},
            megabytes(value, locations, weights) + q * 1024,
            tolerance=1e-3,
        )

    return Case("ms_deform_attn", f"4 levels, 8 heads x 32, {queries or 'all'} queries", make)


def ms_deform_attn_of_offsets() -> Case:
    """BEVFormer's attention to one camera: four reference points of a pillar, eight points a level."""

    def make(threads: int) -> Contest:
        shapes = np.array([[58, 100], [29, 50], [15, 25], [8, 13]], np.int32)
        total, q, rng = int(shapes.prod(1).sum()), 10_000, np.random.default_rng(8)
        value, logits = normal(0, 1, total, 8, 32), normal(1, 1, q, 8, 32)
        references = rng.uniform(0, 1, (1, q, 1, 8)).astype(np.float32)
        offsets = 3 * normal(2, 1, q, 8, 64)
        feeds = {"value": value, "shapes": shapes, "references": references, "offsets": offsets, "logits": logits}
        ours = session("polyop::MultiScaleDeformableAttnTRT", feeds, threads)
        tv, tr, to, tw = (torch.from_numpy(t) for t in (value, references, offsets, logits))
        sizes = torch.from_numpy(shapes).flip(1).reshape(1, 1, 1, 4, 1, 2)

        def formulation() -> torch.Tensor:
            centre = tr.view(1, q, 1, 1, 1, 4, 2)
            at = (centre + to.view(1, q, 8, 4, 2, 4, 2) / sizes[..., None, :]).flatten(4, 5)
            weights = tw.softmax(-1).view(1, q, 8, 4, 8)
            return attend_by_grids(tv, shapes, at, weights).transpose(1, 2)

        moved = megabytes(value, references, offsets, logits) + q * 1024
        return Contest(ours, {"torch formulation": with_torch(formulation)}, moved, tolerance=1e-3)

    return Case("ms_deform_attn_of_offsets", "4 levels, 8 heads x 32, 10,000 queries x 8 points", make)


def rotate() -> Case:
    """BEVFormer: the view of the frame before, turned by the car's own turn."""

    def make(threads: int) -> Contest:
        x = normal(0, 256, 200, 200)
        feeds = {"x": x, "angle": np.array(3.5, np.float32), "center": np.array([100, 100], np.float32)}
        ours = session("polyop::RotateTRT", feeds, threads, attributes={"interpolation": 0})
        tx, turn = torch.from_numpy(x)[None], torch.deg2rad(torch.tensor(-3.5))
        matrix = torch.stack([turn.cos(), turn.sin(), turn * 0, -turn.sin(), turn.cos(), turn * 0]).view(1, 2, 3)

        def formulation() -> torch.Tensor:
            grid = F.affine_grid(matrix, [1, 256, 200, 200], align_corners=False)
            return F.grid_sample(tx, grid, "bilinear", "zeros", align_corners=False)[0]

        return Contest(
            ours, {"torch affine_grid, grid_sample": with_torch(formulation)}, 2 * megabytes(x), tolerance=1e-3
        )

    return Case("rotate", "256x200x200", make)


def inverse() -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 10_000, 4, 4) + 4 * np.eye(4, dtype=np.float32)
        ours = session("polyop::InverseTRT", {"x": x}, threads)
        tx = torch.from_numpy(x)
        return Contest(
            ours, {"torch linalg.inv": with_torch(lambda: torch.linalg.inv(tx))}, 2 * megabytes(x), tolerance=1e-2
        )

    return Case("inverse", "10,000 matrices of 4x4", make)


def qkv_attention() -> Case:
    def make(threads: int) -> Contest:
        q, k, v = normal(0, 8, 900, 32), normal(1, 8, 900, 32), normal(2, 8, 900, 32)
        ours = session("polyop::QKVTRT", {"q": q, "k": k, "v": v}, threads)
        tq, tk, tv = (torch.from_numpy(t) for t in (q, k, v))
        theirs = with_torch(lambda: F.scaled_dot_product_attention(tq, tk, tv))
        return Contest(
            ours, {"torch scaled_dot_product_attention": theirs}, megabytes(q, k, v) + q.nbytes, 4 * 8 * 900 * 900 * 32
        )

    return Case("qkv_attention", "8 x 900 queries, 900 keys, 32", make)


def attention() -> Case:
    def make(threads: int) -> Contest:
        q, k, v = normal(0, 8, 900, 32), normal(1, 8, 900, 32), normal(2, 8, 900, 32)
        ours = session("mmdeploy::ScaledDotProductAttentionTRT", {"q": q, "k": k, "v": v}, threads, ["out", "weights"])
        tq, tk, tv = (torch.from_numpy(t) for t in (q, k, v))

        def formulation() -> tuple[torch.Tensor, torch.Tensor]:
            weights = torch.softmax(torch.bmm(tq, tk.transpose(1, 2)) / 32**0.5, -1)
            return torch.bmm(weights, tv), weights

        moved = megabytes(q, k, v) + q.nbytes + 8 * 900 * 900 * 4
        return Contest(ours, {"torch bmm, softmax, bmm": with_torch(formulation)}, moved, 4 * 8 * 900 * 900 * 32)

    return Case("scaled_dot_product_attention", "8 x 900 queries, 900 keys, 32", make)


# ---- scans, pools, norms, copies -------------------------------------------------------------------


def cumulative(name: str, dim: int) -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 64, 512, 512)
        ours = session(f"mmcv::{name}", {"x": x}, threads, ["values", "indices"], attributes={"dim": dim})
        tx, function = torch.from_numpy(x), getattr(torch, name)
        out = (torch.empty_like(tx), torch.empty(tx.shape, dtype=torch.int64))
        theirs = with_torch(lambda: function(tx, dim, out=out))
        return Contest(ours, {f"torch {name} (out=)": theirs}, megabytes(x) * 4)

    return Case(name, f"64x512x512, dim {dim}", make)


def corner_pool(mode: int) -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 1, 128, 256, 256)
        ours = session("mmcv::MMCVCornerPool", {"x": x}, threads, attributes={"mode": mode})
        tx, dim = torch.from_numpy(x), 2 if mode < 2 else 3
        if mode in (1, 3):
            theirs = with_torch(lambda: tx.cummax(dim).values)
        else:
            theirs = with_torch(lambda: tx.flip(dim).cummax(dim).values.flip(dim))
        return Contest(ours, {"torch cummax": theirs}, megabytes(x) * 2)

    return Case("corner_pool", f"128x256x256, {('top', 'bottom', 'left', 'right')[mode]}", make)


def instance_norm() -> Case:
    def make(threads: int) -> Contest:
        x, scale, bias = normal(0, 1, 64, 512, 512), normal(1, 64), normal(2, 64)
        feeds = {"x": x, "scale": scale, "B": bias}
        ours = session("mmcv::MMCVInstanceNormalization", feeds, threads, attributes={"epsilon": 1e-5})
        built_in = session("InstanceNormalization", feeds, threads, attributes={"epsilon": 1e-5})
        return Contest(ours, {"ONNX Runtime InstanceNormalization": built_in}, megabytes(x) * 2, tolerance=1e-3)

    return Case("instance_norm", "64x512x512", make)


def scatter_nd() -> Case:
    def make(threads: int) -> Contest:
        rng = np.random.default_rng(8)
        x, updates = normal(0, 4096, 1024), normal(1, 1024, 1024)
        indices = rng.permutation(4096)[:1024, None].astype(np.int64)
        feeds = {"x": x, "i": indices, "u": updates}
        return Contest(session("mmcv::ScatterND", feeds, threads), {"ONNX Runtime ScatterND": session("ScatterND", feeds, threads)},
                       megabytes(x) * 2 + megabytes(updates) * 2)  # fmt: skip

    return Case("scatter_nd", "4096x1024, 1024 rows", make)


def gather_topk() -> Case:
    def make(threads: int) -> Contest:
        data = normal(0, 4, 20000, 80)
        index = np.random.default_rng(11).integers(0, 20000, (4, 1000)).astype(np.int32)
        ours = session("mmdeploy::GatherTopk", {"data": data, "indices": index}, threads)
        td, ti = torch.from_numpy(data), torch.from_numpy(index.astype(np.int64))[..., None].expand(-1, -1, 80)
        return Contest(ours, {"torch gather": with_torch(lambda: td.gather(1, ti))}, 2 * 4 * 1000 * 80 * 4)

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

        return Contest(ours, {"torch formulation": with_torch(formulation)}, 9 * 200 * 304 * 16)

    return Case("grid_priors", "9 anchors, 200x304", make)


def rotated_feature_align() -> Case:
    def make(threads: int) -> Contest:
        x, rng = normal(0, 1, 256, 100, 152), np.random.default_rng(12)
        boxes = np.concatenate([rng.uniform(0, 100, (1, 100, 152, 2)), rng.uniform(4, 30, (1, 100, 152, 2)),
                                rng.uniform(-3, 3, (1, 100, 152, 1))], -1).astype(np.float32)  # fmt: skip
        ours = session("mmcv::MMCVRotatedFeatureAlign", {"x": x, "boxes": boxes}, threads,
                       attributes={"spatial_scale": 1.0, "points": 5})  # fmt: skip
        return Contest(ours, {}, megabytes(x) * 2 + megabytes(boxes))

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
        return Contest(ours, rivals, 5 * megabytes(x) + megabytes(masks))

    return Case("carafe", "x2 of 256x50x76, k 5", make)


def psa_mask(kind: int) -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 1, 59 * 59, 30, 30)
        ours = session("mmcv::MMCVPSAMask", {"x": x}, threads, attributes={"psa_type": kind, "mask_size": [59, 59]})
        theirs = in_torch("psa_mask", x, psa_type=("collect", "distribute")[kind], mask_size=[59, 59])
        return Contest(ours, {"torch formulation": theirs}, 2 * 4 * 900.0 * 900, tolerance=0)

    return Case("psa_mask", f"{('collect', 'distribute')[kind]}, 59x59 of 30x30", make)


def masked_conv2d(share: float) -> Case:
    def make(threads: int) -> Contest:
        x, weight, bias = normal(0, 1, 256, 100, 152), normal(1, 256, 256, 3, 3) / 48, normal(2, 256)
        mask = np.random.default_rng(3).random((1, 100, 152)) < share
        ours = session("mmcv::MMCVMaskedConv2d", {"x": x, "m": mask, "w": weight, "b": bias}, threads,
                       attributes={"stride": 1, "padding": 1})  # fmt: skip
        convolution = session("Conv", {"x": x, "w": weight, "b": bias}, threads, attributes={"pads": [1, 1, 1, 1]})
        theirs = in_torch("masked_conv2d", x, mask, weight, bias, stride=[1], padding=[1])
        return Contest(ours, {"torch formulation": theirs}, tolerance=1e-3,
                       yardstick=("ONNX Runtime Conv of all pixels", convolution))  # fmt: skip

    return Case("masked_conv2d", f"256x100x152, 256 filters 3x3, {share:.0%} of the pixels", make)


# ---- point clouds ----------------------------------------------------------------------------------


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
        return Contest(ours, {"torch formulation": theirs}, megabytes(pos) + 8e6)

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

        return Contest(ours, {"SciPy cKDTree (build + query)": trees}, megabytes(xyz, new) + 25_000 * 16 * 8,
                       same=lambda a, b: np.allclose(a[1], b[1], atol=1e-6) and (a[0] == b[0]).mean() > 0.9999)  # fmt: skip

    return Case("knn_query", "100k points, 25k queries, 16 neighbours, 4 segments", make)


def cloud(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).random((*shape, 3)).astype(np.float32)


def furthest_point_sampling(points: int, chosen: int) -> Case:
    def make(threads: int) -> Contest:
        xyz = cloud(13, 1, points)
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

        return Contest(ours, {"torch formulation": with_torch(formulation)}, megabytes(xyz),
                       same=lambda a, b: (a[0] == b[0]).mean() > 0.9)  # fmt: skip

    return Case("furthest_point_sampling", f"{points:,} points, {chosen:,} chosen", make)


def ball_query(radius: float) -> Case:
    def make(threads: int) -> Contest:
        xyz, centres = cloud(14, 1, 16384), cloud(15, 1, 4096)
        feeds = {"xyz": xyz, "center": centres}
        ours = session("polyop::BallQuery", feeds, threads, attributes={"max_radius": radius, "sample_num": 32})
        tx, tc = torch.from_numpy(xyz), torch.from_numpy(centres)

        def formulation() -> torch.Tensor:
            index = torch.arange(16384).expand(1, 4096, -1).clone()
            index[torch.cdist(tc, tx, compute_mode="donot_use_mm_for_euclid_dist") >= radius] = 16384
            index = index.topk(32, largest=False, sorted=True).values
            first = index[..., :1]
            return torch.where(index == 16384, torch.where(first == 16384, 0, first), index).int()

        return Contest(ours, {"torch cdist + topk": with_torch(formulation)}, megabytes(xyz, centres) + 4096 * 32 * 4,
                       same=lambda a, b: (a[0] == b[0]).mean() > 0.999)  # fmt: skip

    return Case("ball_query", f"16,384 points, 4,096 centres, radius {radius}, 32 samples", make)


def three_nn() -> Case:
    def make(threads: int) -> Contest:
        target, source = cloud(16, 1, 16384), cloud(17, 1, 4096)
        ours = session("polyop::ThreeNN", {"target": target, "source": source}, threads, ["dist", "idx"])
        tt, ts = torch.from_numpy(target), torch.from_numpy(source)
        theirs = with_torch(lambda: torch.cdist(tt, ts).topk(3, largest=False).values)

        def tree() -> list[np.ndarray]:
            return [cKDTree(source[0]).query(target[0], 3, workers=threads)[0].astype(np.float32)[None]]

        return Contest(ours, {"torch cdist + topk": theirs, "SciPy cKDTree (build + query)": tree},
                       megabytes(target, source) + 16384 * 24,
                       same=lambda a, b: np.allclose(a[0], b[0], atol=2e-3))  # fmt: skip

    return Case("three_nn", "16,384 points, 4,096 sources", make)


def three_interpolate() -> Case:
    def make(threads: int) -> Contest:
        features, weight = normal(18, 1, 128, 4096), np.random.default_rng(19).random((1, 16384, 3)).astype(np.float32)
        index = np.random.default_rng(20).integers(0, 4096, (1, 16384, 3)).astype(np.int32)
        ours = session("polyop::ThreeInterpolate", {"features": features, "idx": index, "weight": weight}, threads)
        tf, tw = torch.from_numpy(features), torch.from_numpy(weight)
        ti = torch.from_numpy(index.astype(np.int64)).flatten(1)[:, None].expand(-1, 128, -1)
        theirs = with_torch(lambda: (tf.gather(2, ti).view(1, 128, 16384, 3) * tw[:, None]).sum(-1))
        return Contest(ours, {"torch gather + sum": theirs}, megabytes(features, weight, index) + 128 * 16384 * 4)

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
        return Contest(ours, {"torch gather": with_torch(lambda: tf.gather(2, ti)), "ONNX Runtime GatherElements": built_in},
                       megabytes(features, index) + 64 * 4096 * 32 * 4,
                       same=lambda a, b: np.array_equal(a[0].ravel(), b[0].ravel()))  # fmt: skip

    return Case("group_points", "64 channels, 16,384 points, 4,096 groups of 32", make)


def gather_points() -> Case:
    def make(threads: int) -> Contest:
        features = normal(23, 4, 64, 16384)
        index = np.random.default_rng(24).integers(0, 16384, (4, 4096)).astype(np.int32)
        ours = session("polyop::GatherPoints", {"features": features, "idx": index}, threads)
        tf, ti = torch.from_numpy(features), torch.from_numpy(index.astype(np.int64))[:, None].expand(-1, 64, -1)
        return Contest(ours, {"torch gather": with_torch(lambda: tf.gather(2, ti))}, 2 * 4 * 64 * 4096 * 4)

    return Case("gather_points", "4 x 64 channels, 4,096 of 16,384 points", make)


def knn_of_batches() -> Case:
    def make(threads: int) -> Contest:
        xyz, centres = cloud(25, 1, 16384), cloud(26, 1, 4096)
        ours = session("polyop::KNN", {"xyz": xyz, "center": centres}, threads, attributes={"k": 16})
        tx, tc = torch.from_numpy(xyz), torch.from_numpy(centres)
        theirs = with_torch(lambda: torch.cdist(tc, tx).topk(16, largest=False).indices.transpose(1, 2).int())

        def tree() -> list[np.ndarray]:
            return [cKDTree(xyz[0]).query(centres[0], 16, workers=threads)[1].T.astype(np.int32)[None]]

        return Contest(ours, {"torch cdist + topk": theirs, "SciPy cKDTree (build + query)": tree},
                       megabytes(xyz, centres) + 4096 * 16 * 4, same=lambda a, b: (a[0] == b[0]).mean() > 0.99)  # fmt: skip

    return Case("knn", "16,384 points, 4,096 centres, 16 neighbours", make)


# ---- voxels ----------------------------------------------------------------------------------------

PILLARS = {"voxel_size": [0.16, 0.16, 4.0], "point_cloud_range": [0.0, -39.68, -3.0, 69.12, 39.68, 1.0]}


def sweep() -> np.ndarray:
    """120,000 points around a car as a LiDAR sees them: many near, few far; some outside of the range."""
    rng = np.random.default_rng(27)
    away, angle = rng.gamma(2.0, 5.0, 120_000), rng.uniform(-1, 1, 120_000)
    xyz = np.stack([away * np.cos(angle), away * np.sin(angle), rng.uniform(-3, 1, 120_000)], 1)
    return np.concatenate([xyz, rng.random((120_000, 1))], 1).astype(np.float32)


def cells_of(points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(z, y, x) of each point, and whether it is inside."""
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
            place = torch.arange(len(key)) - (size.cumsum(0) - size)[run[order]]
            order, place = order[place < 32], place[place < 32]
            voxels = torch.zeros(len(size), 32, 4)
            voxels[number[run[order]], place] = tp[kept[order]]
            coors = cell[kept[first.sort().values]]
            return [voxels, coors, torch.empty_like(size).index_put_((number,), size).clamp(max=32).int()]

        written = megabytes(*[np.asarray(o.numpy()) for o in ours()])
        return Contest(ours, {"torch unique + index_put": with_torch(formulation)}, megabytes(points) + written)

    return Case("hard_voxelize", "120,000 points, 432 x 496 pillars of 32", make)


def dynamic_voxelize() -> Case:
    def make(threads: int) -> Contest:
        points = sweep()
        ours = session("polyop::DynamicVoxelize", {"points": points}, threads, attributes=PILLARS)
        tp = torch.from_numpy(points)

        def formulation() -> torch.Tensor:
            cell, inside = cells_of(tp)
            return torch.where(inside[:, None], cell, -1)

        return Contest(ours, {"torch formulation": with_torch(formulation)}, megabytes(points) + 120_000 * 12)

    return Case("dynamic_voxelize", "120,000 points, 432 x 496 pillars", make)


def voxel_generator() -> Case:
    def make(threads: int) -> Contest:
        points, num = sweep()[None], np.array([120_000], np.int32)
        attributes = {**PILLARS, "max_num_points_per_voxel": 32, "max_voxels": 10_000, "voxel_feature_num": 10}
        ours = session("::VoxelGeneratorPlugin", {"points": points, "num": num}, threads, ["v", "c", "n"],
                       attributes=attributes)  # fmt: skip
        return Contest(ours, {}, megabytes(points) + 10_000 * (32 * 10 + 4) * 4)

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
            cells, place, counts = torch.unique(some, dim=0, return_inverse=True, return_counts=True)
            made = torch.zeros(len(cells), 64)
            if reduce == "max":
                return [made.scatter_reduce(0, place[:, None].expand_as(rows), rows, "amax", include_self=False), cells]
            return [made.index_add(0, place, rows) / counts[:, None], cells]

        moved = megabytes(feats, coors, *[np.asarray(o.numpy()) for o in ours()])
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
        return Contest(ours, rivals, megabytes(src, indptr) + 50_000 * 64 * 4)

    return Case("segment_csr", f"{reduce} of 200,000 rows in 50,000 segments, 64 channels", make)


def integers(most: int) -> np.ndarray:
    return np.random.default_rng(31).integers(0, most, 500_000)


def custom_unique(most: int) -> Case:
    def make(threads: int) -> Contest:
        x = integers(most)
        ours = session("autoware::CustomUnique", {"x": x}, threads, ["u", "i", "c", "n"])
        tx = torch.from_numpy(x)
        theirs = with_torch(lambda: torch.unique(tx, return_inverse=True, return_counts=True))
        built_in = session("Unique", {"x": x}, threads, ["u", "f", "i", "c"], attributes={"sorted": 1})
        return Contest(ours, {"torch unique": theirs, "ONNX Runtime Unique": built_in}, 3 * megabytes(x),
                       same=lambda a, b: all(np.array_equal(i, j) for i, j in zip(a[:3], b[-3:] if len(b) == 3 else [b[0], *b[2:]], strict=True)))  # fmt: skip

    return Case("custom_unique", f"500,000 integers below {most:.0e}", make)


def argsort(most: int) -> Case:
    def make(threads: int) -> Contest:
        x = integers(most)
        ours = session("autoware::Argsort", {"x": x}, threads)
        tx = torch.from_numpy(x)
        theirs = with_torch(lambda: torch.argsort(tx, stable=True))
        return Contest(ours, {"torch argsort(stable)": theirs}, 2 * megabytes(x), tolerance=0)

    return Case("argsort", f"500,000 integers below {most:.0e}", make)


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


# ---- memory that begins anywhere -----------------------------------------------------------------------


def output_off_line(case: Case) -> Case:
    """The case with its outputs behind the start of a cache line, as NumPy's arrays are, beside outputs at its start."""

    def make(threads: int) -> Contest:
        run = case.make(threads).ours
        return Contest(run.placed(0, 16), yardstick=("output at a line's start", run.placed(0, 0)))

    return Case(case.operator, f"{case.title}, output 16 bytes off", make)


# ---- the accelerator: the same file, with it and without it ----------------------------------------


def accelerated(
    title: str, node: str, feeds: dict[str, np.ndarray], opset: int = 16, tolerance: float = 1e-3, **attributes: object
) -> Case:
    def make(threads: int) -> Contest:
        built_in, ours = (
            session(node, feeds, threads, opset=opset, attributes=attributes, accelerate=a) for a in (False, True)
        )
        return Contest(ours, {f"ONNX Runtime {node}": built_in}, megabytes(*feeds.values()), tolerance=tolerance)

    return Case("accelerator", f"{node}, {title}", make)


def accelerated_roi_align(channels: int, size: int, count: int) -> Case:
    rng = np.random.default_rng(1)
    low = rng.uniform(0, 0.7 * size * 4, (count, 2))
    rois = np.concatenate([low, low + rng.uniform(8, size, (count, 2))], 1).astype(np.float32)
    feeds = {"x": normal(0, 1, channels, size, size), "rois": rois, "of": np.zeros(count, np.int64)}
    return accelerated(f"{channels}x{size}x{size}, {count} rois", "RoiAlign", feeds,
                       output_height=7, output_width=7, sampling_ratio=2, spatial_scale=0.25)  # fmt: skip


def accelerated_grid_sample(shape: tuple[int, ...], mode: str, opset: int = 16) -> Case:
    axes = len(shape) - 1
    grid = np.random.default_rng(1).uniform(-1, 1, (1, *shape[1:], axes)).astype(np.float32)
    title = f"{mode}, {'x'.join(map(str, shape))}"
    return accelerated(title, "GridSample", {"x": normal(0, 1, *shape), "grid": grid}, opset, mode=mode)


def accelerated_nms(classes: int, count: int, most: int, score: float) -> Case:
    rng = np.random.default_rng(1)
    corner = rng.uniform(0, 640, (1, count, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(10, 120, (1, count, 2))], 2).astype(np.float32)
    scores = (rng.uniform(0, 1, (1, classes, count)) ** 4).astype(np.float32)
    given = {"n": np.array([most]), "iou": np.array([0.5], np.float32), "score": np.array([score], np.float32)}
    title = f"{classes} classes, {count} boxes, {most} of each"
    return accelerated(title, "NonMaxSuppression", {"b": boxes, "s": scores, **given}, 11, tolerance=0)


def accelerated_instance_norm(*shape: int) -> Case:
    feeds = {"x": normal(0, *shape), "scale": normal(1, shape[1]), "B": normal(2, shape[1])}
    return accelerated("x".join(map(str, shape)), "InstanceNormalization", feeds)


# ---- small -----------------------------------------------------------------------------------------


def small_grid_sampler() -> Case:
    def make(threads: int) -> Contest:
        x, grid = normal(0, 1, 3, 32, 32), np.random.default_rng(1).uniform(-1, 1, (1, 32, 32, 2)).astype(np.float32)
        ours = session("mmcv::grid_sampler", {"x": x, "grid": grid}, threads,
                       attributes={"interpolation_mode": 0, "padding_mode": 0, "align_corners": 0})  # fmt: skip
        return Contest(ours, {"ONNX Runtime GridSample": session("GridSample", {"x": x, "grid": grid}, threads, attributes={"mode": "linear"})},
                       megabytes(x) * 2)  # fmt: skip

    return Case("grid_sampler", "small: 3x32x32", make)


def small_roi_align() -> Case:
    case = roi_align(3, 32, 32, 10, 7)
    case.title = "small: " + case.title
    return case


def small_nms() -> Case:
    def make(threads: int) -> Contest:
        boxes, scores = boxes_of("spread", 10)
        ours = session(
            "mmcv::NonMaxSuppression",
            {"boxes": boxes, "scores": scores},
            threads,
            attributes={"iou_threshold": 0.5, "offset": 0},
        )
        feeds = {"b": boxes[None], "s": scores[None, None], "n": np.array([10]), "iou": np.array([0.5], np.float32)}
        return Contest(ours, {"ONNX Runtime NonMaxSuppression": session("NonMaxSuppression", feeds, threads, opset=11)}, 1,
                       same=lambda a, b: np.array_equal(a[0], b[0][:, 2]))  # fmt: skip

    return Case("nms", "small: 10 boxes", make)


def small_add() -> Case:
    def make(threads: int) -> Contest:
        a = normal(0, 3, 32)
        ours = session("custom::my_add", {"a": a, "b": a}, threads)
        return Contest(
            ours,
            {"ONNX Runtime Add": session("Add", {"a": a, "b": a}, threads)},
            megabytes(a) * 3,
            same=lambda x, y: x[0].shape == y[0].shape,
        )

    return Case("my_add", "small: 3x32, the overhead of a call", make)


ACCELERATED = [
    accelerated_roi_align(256, 100, 300),
    accelerated_roi_align(3, 16, 2),
    *(accelerated_grid_sample((64, 128, 128), mode) for mode in ("bilinear", "nearest", "bicubic")),
    accelerated_grid_sample((16, 32, 32, 32), "linear", 20),
    accelerated_grid_sample((1, 8, 8), "bilinear"),
    accelerated_nms(1, 8400, 300, 0.25),
    accelerated_nms(80, 8400, 100, 0.25),
    accelerated_nms(1, 100, 10, 0.25),
    accelerated_instance_norm(1, 64, 256, 256),
    accelerated_instance_norm(4, 256, 16, 16),
]
CASES = [
    *ACCELERATED,
    roi_align(256, 200, 304, 1000, 7),
    roi_align(256, 50, 76, 300, 14),
    tensorrt_roi_align(),
    roi_align_rotated(),
    multi_level_roi_align(),
    deform_roi_pool(),
    prroi_pool(),
    border_align(),
    *(grid_sampler(mode, smooth) for mode in (0, 1, 2) for smooth in (True, False)),
    grid_sampler_3d(),
    resize(1, 512, 512),
    resize(3, 360, 640),
    resize(3, 1080, 1920),
    bicubic_interpolate(),
    *(nms(kind) for kind in ("clustered", "spread", "disjoint")),
    soft_nms(1),
    soft_nms(2),
    nms_rotated("clustered", 20),
    nms_rotated("spread", 130),
    nms_match("clustered", 4.1),
    nms_match("spread", 16.7),
    batched_nms(),
    efficient_nms(),
    bev_pool(),
    quick_cumsum(),
    pillar_scatter(),
    *(sparse_pairs("get_indice_pairs_implicit_gemm", subm) for subm in (True, False)),
    sparse_pairs("get_indice_pairs", True),
    *(sparse_products(operator) for operator in ("implicit_gemm", "indice_conv")),
    deform_conv(modulated=True),
    deform_conv(modulated=False),
    ms_deform_attn(900),
    ms_deform_attn(None),
    flash_deform_attn(),
    dcn(3),
    dcn(4),
    ms_deform_attn_of_offsets(),
    attention(),
    qkv_attention(),
    rotate(),
    inverse(),
    *(cumulative(name, dim) for name in ("cummax", "cummin") for dim in range(3)),
    *(corner_pool(mode) for mode in range(4)),
    instance_norm(),
    scatter_nd(),
    gather_topk(),
    grid_priors(),
    rotated_feature_align(),
    carafe(),
    psa_mask(0),
    psa_mask(1),
    masked_conv2d(0.05),
    voxel_grid(),
    knn(),
    knn_of_batches(),
    furthest_point_sampling(16384, 4096),
    furthest_point_sampling(100_000, 2048),
    ball_query(0.05),
    ball_query(0.2),
    three_nn(),
    three_interpolate(),
    group_points(),
    gather_points(),
    hard_voxelize(),
    dynamic_voxelize(),
    voxel_generator(),
    dynamic_scatter("max"),
    dynamic_scatter("mean"),
    segment_csr("sum"),
    segment_csr("max"),
    custom_unique(100_000),
    custom_unique(2**62),
    argsort(100_000),
    argsort(2**62),
    select_and_pad(),
    *boxes3d.CASES,
    *(
        output_off_line(case)
        for case in (
            roi_align(256, 200, 304, 1000, 7),
            grid_sampler(0, True),
            grid_sampler(0, False),
            *(cumulative("cummax", dim) for dim in range(3)),
            corner_pool(0),
            corner_pool(3),
            instance_norm(),
        )
    ),
    small_grid_sampler(),
    small_roi_align(),
    small_nms(),
    small_add(),
]
