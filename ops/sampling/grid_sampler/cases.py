# SPDX-License-Identifier: Apache-2.0
from itertools import product

import numpy as np
import torch
import torch.nn.functional as F
from benchmark import F16, F32, Call, Cases, Contest, Run, call
from contenders import bytes_of, in_openvino, nearly_all_equal, normal, session, with_torch
from inputs import PIXELS, image, side_of, uniform

import polyop.functional as ops
from ops.sampling.cases import smooth_grid

cases = Cases(__file__)
MODES = ("bilinear", "nearest", "bicubic")


def in_onnxruntime(x: np.ndarray, grid: np.ndarray, mode: str, threads: int) -> tuple[Run, Run]:
    ours = {"interpolation_mode": MODES.index(mode), "padding_mode": 0, "align_corners": 0}
    built_in = {"mode": mode.removeprefix("bi"), "padding_mode": "zeros", "align_corners": 0}
    nodes = {"mmcv::grid_sampler": ours, "GridSample": built_in}
    return tuple(session(node, {"x": x, "grid": grid}, threads, attributes=nodes[node]) for node in nodes)


@cases.cpu("{}, 64x256x256, {} grid", over=product(MODES, ("smooth", "random")))
def _(threads: int, mode: str, kind: str) -> Contest:
    x = normal(0, 1, 64, 256, 256)
    if kind == "smooth":
        angle = torch.tensor([[[0.9, 0.2, 0.05], [-0.2, 0.9, 0.0]]])
        grid = F.affine_grid(angle, [1, 64, 256, 256], align_corners=False).numpy()
    else:
        grid = np.random.default_rng(1).uniform(-1, 1, (1, 256, 256, 2)).astype(np.float32)
    ours, built_in = in_onnxruntime(x, grid, mode, threads)
    tx, tg = torch.from_numpy(x), torch.from_numpy(grid)
    theirs = with_torch(lambda: F.grid_sample(tx, tg, mode, "zeros", align_corners=False))
    how = {"mode": mode, "padding_mode": "zeros", "align_corners": False}
    openvino = in_openvino("GridSample", 9, [x, grid], threads, **how)
    rivals = {"ONNX Runtime GridSample": built_in, "torch grid_sample": theirs, "OpenVINO GridSample": openvino}
    same = nearly_all_equal if mode == "nearest" else None
    return Contest(ours, rivals, 2 * bytes_of(x), same=same, tolerance=1e-3)


cases.in_half("bilinear, 64x256x256, smooth grid", "bilinear, 64x256x256, random grid")
cases.off_line("bilinear, 64x256x256, smooth grid", "bilinear, 64x256x256, random grid")


@cases.cpu("trilinear, 16x32x64x64, random grid")
def _(threads: int) -> Contest:
    x = normal(0, 1, 16, 32, 64, 64)
    grid = np.random.default_rng(1).uniform(-1, 1, (1, 32, 64, 64, 3)).astype(np.float32)
    ours, built_in = in_onnxruntime(x, grid, "bilinear", threads)
    tx, tg = torch.from_numpy(x), torch.from_numpy(grid)
    theirs = with_torch(lambda: F.grid_sample(tx, tg, "bilinear", "zeros", align_corners=False))
    return Contest(
        ours, {"ONNX Runtime GridSample": built_in, "torch grid_sample": theirs}, 2 * bytes_of(x), tolerance=1e-3
    )


@cases.cpu("small: 3x32x32")
def _(threads: int) -> Contest:
    x, grid = normal(0, 1, 3, 32, 32), np.random.default_rng(1).uniform(-1, 1, (1, 32, 32, 2)).astype(np.float32)
    ours, built_in = in_onnxruntime(x, grid, "bilinear", threads)
    openvino = in_openvino(
        "GridSample", 9, [x, grid], threads, mode="bilinear", padding_mode="zeros", align_corners=False
    )
    return Contest(ours, {"ONNX Runtime GridSample": built_in, "OpenVINO GridSample": openvino}, bytes_of(x) * 2)


def sampled(mode: str, kind: str, side: int, dtype: torch.dtype = F32) -> Call:
    grid = torch.rand(1, side, side, 2) * 2 - 1
    if kind == "rotated":
        grid = F.affine_grid(torch.tensor([[[0.9, 0.1, 0], [-0.1, 0.9, 0]]]), [1, 1, side, side], align_corners=False)
    return Call(
        lambda t, g: ops.grid_sample(t, g, mode),
        [torch.randn(1, 64, side, side).to(dtype), grid.to(dtype)],
        {"torch": lambda t, g: F.grid_sample(t, g, mode, align_corners=False)},
    )


for _mode, _kind in product(MODES, ("rotated", "random")):
    _linear = _mode == "bilinear"
    cases.differentiable(f"{_mode}, 64x512x512, {_kind}", F32, *([F16] if _linear else []), backward=_linear)(
        lambda dtype, mode=_mode, kind=_kind: sampled(mode, kind, 512, dtype)
    )
cases.gradient("grid_sample 64x200x200, {}", over=["random", "rotated"])(lambda kind: sampled("bilinear", kind, 200))
cases.gradient("grid_sample {} 64x200x200, random", over=["nearest", "bicubic"])(
    lambda mode: sampled(mode, "random", 200)
)


@cases.gradient("grid_sample 16x32x64x64, random")
@cases.differentiable("bilinear, 16x32x64x64, random")
def _(dtype: torch.dtype = F32) -> Call:
    inputs = [torch.randn(1, 16, 32, 64, 64), torch.rand(1, 32, 64, 64, 3) * 2 - 1]
    return Call(ops.grid_sample, inputs, {"torch": lambda t, g: F.grid_sample(t, g, align_corners=False)})


cases.growth("pixels", 128 * 128, PIXELS)(lambda n: call("grid_sampler", image(n), smooth_grid(n)))
cases.growth("pixels, random locations", 128 * 128, PIXELS)(
    lambda n: call("grid_sampler", image(n), uniform(1, side_of(n), side_of(n), 2, low=-1))
)
cases.small([(2, 2, 4, 5), (2, 3, 3, 2)])
