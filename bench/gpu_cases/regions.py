# SPDX-License-Identifier: Apache-2.0
"""RoIAlign, its variants, and other pooling of boxes."""

from __future__ import annotations

from typing import Any

import gpu_rivals
import torch
from torch import Tensor

import polyop.functional as ops
from gpu_cases.cases import F16, F32, Call, differentiable

SHAPE, ROIS = (256, 200, 304), 1000
BINS: dict[str, Any] = {"output_height": 7, "output_width": 7}


def features(dtype: torch.dtype = F32) -> Tensor:
    return torch.randn(1, *SHAPE).to(dtype)


def boxes(count: int = ROIS, rotated: bool = False, scale: float = 1.0, dtype: torch.dtype = F32) -> Tensor:
    extent = torch.tensor([SHAPE[2], SHAPE[1]]) * scale
    low = torch.rand(count, 2) * extent * 0.7
    size = torch.rand(count, 2) * extent * 0.3 + 1
    image = torch.zeros(count, 1)
    parts = [image, low + size / 2, size, torch.rand(count, 1) * 3] if rotated else [image, low, low + size]
    return torch.cat(parts, 1).to(dtype)


@differentiable("roi_align", "256x200x304, 1,000 rois of 7x7", F32, F16)
def _(dtype: torch.dtype) -> Call:
    x, rois = features(dtype), boxes(dtype=dtype)
    call = Call(lambda t: ops.roi_align(t, rois, 7, 1.0, 2, True), [x], also_reads=[rois])
    call.against_torchvision(lambda t: torch.ops.torchvision.roi_align(t, rois, 1.0, 7, 7, 2, True))
    none = x.new_zeros(0)

    def forward(t: Tensor) -> Tensor:
        to = t.new_empty(ROIS, SHAPE[0], 7, 7)
        gpu_rivals.mmcv().roi_align_forward(t, rois, to, none, none, 7, 7, 1.0, 2, 1, True)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        gpu_rivals.mmcv().roi_align_backward(grad, rois, none, none, to, 7, 7, 1.0, 2, 1, True)
        return [to]

    return call.against_mmcv(forward, backward)


@differentiable("roi_align_rotated", "256x200x304, 1,000 rois of 7x7")
def _(dtype: torch.dtype) -> Call:
    rois = boxes(rotated=True)

    def function(t: Tensor) -> Tensor:
        return torch.ops.polyop.roi_align_rotated(t, rois, **BINS, sampling_ratio=2)

    def forward(t: Tensor) -> Tensor:
        to = t.new_empty(ROIS, SHAPE[0], 7, 7)
        gpu_rivals.mmcv().roi_align_rotated_forward(t, rois, to, 7, 7, 1.0, 2, True, False)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        gpu_rivals.mmcv().roi_align_rotated_backward(grad, rois, to, 7, 7, 1.0, 2, True, False)
        return [to]

    return Call(function, [features()], also_reads=[rois]).against_mmcv(forward, backward)


@differentiable("roi_pool", "256x200x304, 1,000 rois of 7x7")
def _(dtype: torch.dtype) -> Call:
    x, rois = features(), boxes()
    call = Call(lambda t: ops.roi_pool(t, rois, 7), [x], also_reads=[rois])
    return call.against_torchvision(lambda t: torch.ops.torchvision.roi_pool(t, rois, 1.0, 7, 7)[0])


@differentiable("roi_pool", "256x200x304, 1,000 rois of 7x7, not rounded")
def _(dtype: torch.dtype) -> Call:
    rois, argmax = boxes(), torch.empty(ROIS, SHAPE[0], 7, 7, dtype=torch.int32)

    def forward(t: Tensor) -> Tensor:
        to = t.new_empty(argmax.shape)
        gpu_rivals.mmcv().roi_pool_forward(t, rois, to, argmax, 7, 7, 1.0)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        if not done:
            done.append(forward(t))
        to = torch.zeros_like(t)
        gpu_rivals.mmcv().roi_pool_backward(grad, rois, argmax, to, 7, 7, 1.0)
        return [to]

    done: list[Tensor] = []
    call = Call(lambda t: torch.ops.polyop.roi_pool(t, rois, **BINS, rounded=0)[0], [features()], also_reads=[rois])
    return call.against_mmcv(forward, backward)


@differentiable("multi_level_roi_align", "4 levels of 256x200x304, 1,000 rois of 7x7", F32, F16)
def _(dtype: torch.dtype) -> Call:
    rois = boxes(scale=4, dtype=dtype)
    strides = [4.0, 8.0, 16.0, 32.0]
    maps = [torch.randn(1, SHAPE[0], SHAPE[1] >> level, SHAPE[2] >> level).to(dtype) for level in range(4)]
    sizes = (rois[:, 3:].float() - rois[:, 1:3].float()).prod(1).sqrt()
    levels = torch.floor(torch.log2(sizes / 56 + 1e-6)).clamp(0, 3).long()

    def by_level(*feats: Tensor) -> Tensor:
        """Computes what detectors do without the operator: selects the rois of each level."""
        to = feats[0].new_zeros(ROIS, SHAPE[0], 7, 7)
        for level, (feat, stride) in enumerate(zip(feats, strides, strict=True)):
            at = (levels == level).nonzero()[:, 0]
            to = to.index_put((at,), torch.ops.torchvision.roi_align(feat, rois[at], 1 / stride, 7, 7, 2, True))
        return to

    def function(*feats: Tensor) -> Tensor:
        return torch.ops.polyop.multi_level_roi_align(
            rois, feats, **BINS, sampling_ratio=2, featmap_strides=strides, finest_scale=56
        )

    return Call(function, maps, also_reads=[rois]).against_torchvision(by_level)


@differentiable("border_align", "256x100x152, 2,000 boxes, 10")
def _(dtype: torch.dtype) -> Call:
    x, size = torch.randn(1, 256, 100, 152), 10
    rois = (boxes(2000, scale=0.5)[None, :, 1:]).contiguous()
    argmax = torch.zeros(1, 64, 2000, 4, dtype=torch.int32)

    def forward(t: Tensor) -> Tensor:
        to = t.new_empty(argmax.shape)
        gpu_rivals.mmcv().border_align_forward(t, rois, to, argmax, size)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        if not done:
            done.append(forward(t))
        to = torch.zeros_like(t)
        gpu_rivals.mmcv().border_align_backward(grad, rois, argmax, to, size)
        return [to]

    done: list[Tensor] = []
    return Call(lambda t: ops.border_align(t, rois, size), [x], also_reads=[rois]).against_mmcv(forward, backward)


@differentiable("rotated_feature_align", "256x100x152, 5 points")
def _(dtype: torch.dtype) -> Call:
    best = torch.rand(1, 100, 152, 5) * torch.tensor([800.0, 1200, 40, 40, 3])

    def function(t: Tensor) -> Tensor:
        return torch.ops.polyop.rotated_feature_align(t, best, spatial_scale=0.125, points=5)

    def forward(t: Tensor) -> Tensor:
        to = torch.zeros_like(t)
        gpu_rivals.mmcv().rotated_feature_align_forward(t, best, to, 0.125, 5)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        gpu_rivals.mmcv().rotated_feature_align_backward(grad, best, to, 0.125, 5)
        return [to]

    return Call(function, [torch.randn(1, 256, 100, 152)], also_reads=[best]).against_mmcv(forward, backward)


@differentiable("roiaware_pool3d", "20,000 points, 64 boxes, 12x12x12, 64 channels")
def _(dtype: torch.dtype) -> Call:
    rois = torch.rand(64, 7) * torch.tensor([40.0, 40, 1, 3, 3, 3, 3]) + torch.tensor([0, 0, 0, 1.0, 1, 1, 0])
    points = torch.rand(20_000, 3) * torch.tensor([40.0, 40, 3])
    kept: list[Tensor] = []

    def forward(t: Tensor) -> Tensor:
        to = t.new_zeros(64, 12, 12, 12, 64)
        argmax, at = to.new_zeros(to.shape, dtype=torch.int32), to.new_zeros(64, 12, 12, 12, 128, dtype=torch.int32)
        gpu_rivals.mmcv().roiaware_pool3d_forward(rois, points, t, argmax, at, to, 0)
        kept[:] = [at, argmax]
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        if not kept:
            forward(t)
        to = torch.zeros_like(t)
        gpu_rivals.mmcv().roiaware_pool3d_backward(*kept, grad, to, 0)
        return [to]

    call = Call(
        lambda t: torch.ops.polyop.roiaware_pool3d(rois, points, t, out_size=[12, 12, 12]),
        [torch.randn(20_000, 64)], also_reads=[rois, points],
    )  # fmt: skip
    return call.against_mmcv(forward, backward)
