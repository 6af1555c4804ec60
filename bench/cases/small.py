# SPDX-License-Identifier: Apache-2.0
"""Calls so small that the overhead of a call dominates."""

from __future__ import annotations

import numpy as np
from harness import Case, Contest, bytes_of, in_openvino, normal, session

from cases.regions import roi_align
from cases.suppression import nms


def small_grid_sampler() -> Case:
    def make(threads: int) -> Contest:
        x, grid = normal(0, 1, 3, 32, 32), np.random.default_rng(1).uniform(-1, 1, (1, 32, 32, 2)).astype(np.float32)
        ours = session("mmcv::grid_sampler", {"x": x, "grid": grid}, threads,
                       attributes={"interpolation_mode": 0, "padding_mode": 0, "align_corners": 0})  # fmt: skip
        built_in = session("GridSample", {"x": x, "grid": grid}, threads, attributes={"mode": "linear"})
        openvino = in_openvino(
            "GridSample", 9, [x, grid], threads, mode="bilinear", padding_mode="zeros", align_corners=False
        )
        return Contest(ours, {"ONNX Runtime GridSample": built_in, "OpenVINO GridSample": openvino}, bytes_of(x) * 2)

    return Case("grid_sampler", "small: 3x32x32", make)


def small_roi_align() -> Case:
    case = roi_align(3, 32, 32, 10, 7)
    case.title = "small: " + case.title
    return case


def small_nms() -> Case:
    case = nms("spread", 10)
    case.title = "small: 10 boxes"
    return case


def small_add() -> Case:
    def make(threads: int) -> Contest:
        a = normal(0, 3, 32)
        ours = session("custom::my_add", {"a": a, "b": a}, threads)
        built_in, openvino = session("Add", {"a": a, "b": a}, threads), in_openvino("Add", 1, [a, a], threads)
        return Contest(ours, {"ONNX Runtime Add": built_in, "OpenVINO Add": openvino}, bytes_of(a) * 3,
                       same=lambda x, y: x[0].shape == y[0].shape)  # fmt: skip

    return Case("my_add", "small: 3x32, the overhead of a call", make)


CASES = [
    small_grid_sampler(),
    small_roi_align(),
    small_nms(),
    small_add(),
]
