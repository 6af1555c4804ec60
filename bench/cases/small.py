"""Calls so small that the way to the kernel counts."""

from __future__ import annotations

import numpy as np
from harness import Case, Contest, megabytes, normal, session

from cases.regions import roi_align
from cases.suppression import boxes_of


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


CASES = [
    small_grid_sampler(),
    small_roi_align(),
    small_nms(),
    small_add(),
]
