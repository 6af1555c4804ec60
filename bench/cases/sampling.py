# SPDX-License-Identifier: Apache-2.0
"""Sampling with grids, rotating and resizing images."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from harness import Case, Contest, Run, bytes_of, in_openvino, normal, session, with_torch

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
                           attributes={"mode": ("linear", "nearest", "cubic")[mode], "padding_mode": "zeros",
                                       "align_corners": 0})  # fmt: skip
        tx, tg = torch.from_numpy(x), torch.from_numpy(grid)
        theirs = with_torch(lambda: F.grid_sample(tx, tg, MODES[mode], "zeros", align_corners=False))
        how = {"mode": MODES[mode], "padding_mode": "zeros", "align_corners": False}
        openvino = in_openvino("GridSample", 9, [x, grid], threads, **how)
        same = nearly_all_equal if mode == 1 else None
        return Contest(
            ours,
            {"ONNX Runtime GridSample": built_in, "torch grid_sample": theirs, "OpenVINO GridSample": openvino},
            2 * bytes_of(x),
            same=same,
            tolerance=1e-3,
        )

    return Case("grid_sampler", f"{MODES[mode]}, 64x256x256, {'smooth' if smooth else 'random'} grid", make)


def nearly_all_equal(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    """Compares results of nearest: coordinates between two pixels may be rounded differently, at most 1 in 10,000."""
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
            ours, {"ONNX Runtime GridSample": built_in, "torch grid_sample": theirs}, 2 * bytes_of(x), tolerance=1e-3
        )

    return Case("grid_sampler", "trilinear, 16x32x64x64, random grid", make)


def interpolate(x: np.ndarray, name: str, target: list, threads: int, coordinates: str) -> dict[str, Run]:
    """OpenVINO's bicubic resizing of height and width; `name` says whether the target is "scales" or "sizes"."""
    constants = [np.array(target, np.float32 if name == "scales" else np.int64), [2, 3]]
    run = in_openvino("Interpolate", 11, [x], threads, constants, mode="cubic", shape_calculation_mode=name,
                      coordinate_transformation_mode=coordinates, cube_coeff=-0.75, nearest_mode="round_prefer_floor",
                      antialias=False, pads_begin=[], pads_end=[])  # fmt: skip
    return {"OpenVINO Interpolate": run}


def resize(channels: int, height: int, width: int) -> Case:
    def make(threads: int) -> Contest:
        x, scales = normal(0, 1, channels, height, width), np.array([1, 1, 3, 3], np.float32)
        ours = session("Just_A_Scope_Name::DynamicTRTResize", {"x": x, "scales": scales}, threads)
        built_in = session("Resize", {"x": x, "roi": None, "scales": scales}, threads, opset=18,
                           attributes={"mode": "cubic", "cubic_coeff_a": -0.75,
                                       "coordinate_transformation_mode": "half_pixel"})  # fmt: skip
        tx = torch.from_numpy(x)
        theirs = with_torch(lambda: F.interpolate(tx, scale_factor=3, mode="bicubic", align_corners=False))
        rivals = {"ONNX Runtime Resize": built_in, "torch interpolate": theirs}
        rivals |= interpolate(x, "scales", [3, 3], threads, "half_pixel")
        return Contest(ours, rivals, 10 * bytes_of(x), tolerance=1e-3)

    return Case("dynamic_resize", f"bicubic x3 of {channels}x{height}x{width}", make)


def bicubic_interpolate() -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 1, 3, 360, 640)
        feeds = {"x": x}
        ours = session("mmdeploy::TRTBicubicInterpolate", feeds, threads,
                       attributes={"scale_factor": [2.0, 2.0], "align_corners": 1})  # fmt: skip
        tx = torch.from_numpy(x)
        theirs = with_torch(lambda: F.interpolate(tx, scale_factor=2, mode="bicubic", align_corners=True))
        rivals = {"torch interpolate": theirs, **interpolate(x, "scales", [2, 2], threads, "align_corners")}
        return Contest(ours, rivals, 5 * bytes_of(x), tolerance=1e-3)

    return Case("bicubic_interpolate", "x2 of 3x360x640, align_corners", make)


def cubic_resize() -> Case:
    def make(threads: int) -> Contest:
        x = normal(0, 1, 3, 360, 640)
        rule = {"coordinate_transformation_mode": "align_corners", "cubic_coeff_a": -0.75}
        feeds = {"input": x, "sizes": np.array([720, 1280])}
        ours = session("polyop::CubicResize", feeds, threads, attributes=rule)
        feeds = {"x": x, "roi": None, "scales": None, "sizes": np.array([1, 3, 720, 1280])}
        built_in = session("Resize", feeds, threads, opset=18, attributes={"mode": "cubic", **rule})
        tx = torch.from_numpy(x)
        theirs = with_torch(lambda: F.interpolate(tx, size=(720, 1280), mode="bicubic", align_corners=True))
        rivals = {"ONNX Runtime Resize": built_in, "torch interpolate": theirs}
        rivals |= interpolate(x, "sizes", [720, 1280], threads, "align_corners")
        return Contest(ours, rivals, 5 * bytes_of(x), tolerance=1e-3)

    return Case("cubic_resize", "3x360x640 to 720x1280, align_corners", make)


def rotate() -> Case:
    """BEVFormer: the view of the previous frame, rotated by the rotation of the car."""

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
            ours, {"torch affine_grid, grid_sample": with_torch(formulation)}, 2 * bytes_of(x), tolerance=1e-3
        )

    return Case("rotate", "256x200x200", make)


CASES = [
    *(grid_sampler(mode, smooth) for mode in (0, 1, 2) for smooth in (True, False)),
    grid_sampler_3d(),
    rotate(),
    resize(1, 512, 512),
    resize(3, 360, 640),
    resize(3, 1080, 1920),
    bicubic_interpolate(),
    cubic_resize(),
]
