# SPDX-License-Identifier: Apache-2.0
"""Operators on feature maps: correlation, corner pooling, scans, masks, normalization."""

from __future__ import annotations

import gpu_rivals
import torch
import torch.nn.functional as F
from torch import Tensor

import polyop.functional as ops
from gpu_cases.cases import F16, F32, Call, differentiable


@differentiable("correlation", "2x128x48x64, displacements of 4")
def _(dtype: torch.dtype) -> Call:
    window = [1, 1, 9, 9, 0, 0, 1, 1, 1, 1, 1, 1]  # kernel, patch, padding, dilation, patch's dilation, stride

    def forward(a: Tensor, b: Tensor) -> Tensor:
        to = a.new_zeros(2, 9, 9, 48, 64)
        gpu_rivals.mmcv().correlation_forward(a, b, to, *window)
        return to

    def backward(grad: Tensor, a: Tensor, b: Tensor) -> list[Tensor]:
        to = [torch.zeros_like(a), torch.zeros_like(b)]
        gpu_rivals.mmcv().correlation_backward(grad, a, b, *to, *window)
        return to

    inputs = [torch.randn(2, 128, 48, 64) for _ in range(2)]
    call = Call(lambda a, b: torch.ops.polyop.correlation(a, b, max_displacement=4), inputs)
    return call.against_mmcv(forward, backward)


@differentiable("correlation_lookup", "3,072 pixels, maps of 48x64, radius 4")
def _(dtype: torch.dtype) -> Call:
    where = torch.rand(1, 2, 48, 64) * 48

    def function(t: Tensor) -> Tensor:
        return torch.ops.polyop.correlation_lookup(t, where)

    return Call(function, [torch.randn(1, 48, 64, 48, 64)], also_reads=[where])


def pooled(mode: str, dim: int, flip: bool) -> Call:
    def composed(t: Tensor) -> Tensor:
        return t.flip(dim).cummax(dim)[0].flip(dim) if flip else t.cummax(dim)[0]

    return Call(lambda t: ops.corner_pool(t, mode), [torch.randn(2, 128, 128, 128)], {"torch": composed})


for _mode, _dim, _flip in (("top", 2, True), ("left", 3, True)):
    differentiable("corner_pool", f"2x128x128x128, {_mode}")(lambda _, m=_mode, d=_dim, f=_flip: pooled(m, d, f))


def scanned(dim: int) -> Call:
    def function(t: Tensor) -> Tensor:
        return ops.cummax(t, dim)[0]

    return Call(function, [torch.randn(64, 512, 512)], {"torch": lambda t: torch.cummax(t, dim)[0]})


for _dim in (1, 2):
    differentiable("cummax", f"64x512x512 along {_dim}")(lambda _, d=_dim: scanned(d))


@differentiable("psa_mask", "2x3,481x30x30, 59x59, collect")
def _(dtype: torch.dtype) -> Call:
    sizes = [0, 2, 30, 30, 59, 59, 29, 29]

    def forward(t: Tensor) -> Tensor:
        to = t.new_zeros(2, 900, 30, 30)
        gpu_rivals.mmcv().psamask_forward(t, to, *sizes)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        gpu_rivals.mmcv().psamask_backward(grad, to, *sizes)
        return [to]

    call = Call(lambda t: torch.ops.polyop.psa_mask(t, mask_size=[59, 59]), [torch.randn(2, 59 * 59, 30, 30)])
    return call.against_mmcv(forward, backward)


@differentiable("instance_norm", "8x64x128x128", F32, F16)
def _(dtype: torch.dtype) -> Call:
    inputs = [t.to(dtype) for t in (torch.randn(8, 64, 128, 128), torch.randn(64), torch.randn(64))]
    rivals = {"torch": lambda x, w, b: F.instance_norm(x, weight=w, bias=b)}
    return Call(torch.ops.polyop.instance_norm, inputs, rivals)


@differentiable("my_add", "64x100,000", backward=False)
def _(dtype: torch.dtype) -> Call:
    inputs = [torch.randn(64, 100_000) for _ in range(2)]
    return Call(torch.ops.polyop.my_add, inputs, {"torch": lambda a, b: torch.add(b, a, alpha=2)})
