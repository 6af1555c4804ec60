# SPDX-License-Identifier: Apache-2.0
"""Grid sampling, upsampling and resizing."""

from __future__ import annotations

import gpu_rivals
import torch
import torch.nn.functional as F
from torch import Tensor

import polyop.functional as ops
from gpu_cases.cases import F16, F32, Call, differentiable

CHANNELS, SIDE = 64, 512


def sampled(mode: str, smooth: bool, dtype: torch.dtype) -> Call:
    grid = torch.rand(1, SIDE, SIDE, 2) * 2 - 1
    if smooth:
        grid = F.affine_grid(torch.tensor([[[0.9, 0.1, 0], [-0.1, 0.9, 0]]]), [1, 1, SIDE, SIDE], align_corners=False)
    return Call(
        lambda t, g: ops.grid_sample(t, g, mode), [torch.randn(1, CHANNELS, SIDE, SIDE).to(dtype), grid.to(dtype)],
        {"torch": lambda t, g: F.grid_sample(t, g, mode, align_corners=False)},
    )  # fmt: skip


for _mode, _smooth, _dtypes in (
    ("bilinear", True, (F32, F16)),
    ("bilinear", False, (F32, F16)),
    ("nearest", True, (F32,)),
    ("nearest", False, (F32,)),
    ("bicubic", True, (F32,)),
    ("bicubic", False, (F32,)),
):
    _title = f"{_mode}, 64x512x512, {'rotated' if _smooth else 'random'}"
    differentiable("grid_sampler", _title, *_dtypes, backward=_mode == "bilinear")(
        lambda dtype, mode=_mode, smooth=_smooth: sampled(mode, smooth, dtype)
    )


@differentiable("grid_sampler", "bilinear, 16x32x64x64, random")
def _(dtype: torch.dtype) -> Call:
    inputs = [torch.randn(1, 16, 32, 64, 64), torch.rand(1, 32, 64, 64, 3) * 2 - 1]
    return Call(ops.grid_sample, inputs, {"torch": lambda t, g: F.grid_sample(t, g, align_corners=False)})


@differentiable("bicubic_interpolate", "64x256x256 by 2")
def _(dtype: torch.dtype) -> Call:
    return Call(
        lambda t: torch.ops.polyop.bicubic_interpolate(t, scale_factor=[2.0, 2.0]), [torch.randn(1, 64, 256, 256)],
        {"torch": lambda t: F.interpolate(t, scale_factor=2.0, mode="bicubic")},
    )  # fmt: skip


@differentiable("carafe", "256x50x76, 5, x2", F32, F16)
def _(dtype: torch.dtype) -> Call:
    features, masks = torch.randn(1, 256, 50, 76).to(dtype), torch.randn(1, 25, 100, 152).softmax(1).to(dtype)
    kept: list[Tensor] = []

    def forward(t: Tensor, m: Tensor) -> Tensor:
        to = t.new_zeros(1, 256, 100, 152)
        blocked = torch.zeros_like(t)
        gpu_rivals.mmcv().carafe_forward(t, m, blocked, torch.zeros_like(to), torch.zeros_like(m), to, 5, 1, 2)
        kept[:] = [blocked]
        return to

    def backward(grad: Tensor, t: Tensor, m: Tensor) -> list[Tensor]:
        if not kept:
            forward(t, m)
        like = [torch.zeros_like(of) for of in (grad, grad, t, m, t, m)]
        gpu_rivals.mmcv().carafe_backward(grad, kept[0], m, *like, 5, 1, 2)
        return like[4:]

    return Call(lambda t, m: ops.carafe(t, m, 5, 1, 2), [features, masks]).against_mmcv(forward, backward)
