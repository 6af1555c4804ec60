# SPDX-License-Identifier: Apache-2.0
"""Deformable, neighborhood and other attention, and state-space models."""

from __future__ import annotations

import gpu_rivals
import torch
import torch.nn.functional as F
from torch import Tensor

from gpu_cases.cases import F16, F32, Call, Contest, case, differentiable

SIZES = [(100, 134), (50, 67), (25, 34), (13, 17)]
PIXELS = sum(height * width for height, width in SIZES)


def deformable(queries: int, dtype: torch.dtype) -> Call:
    shapes = torch.tensor(SIZES)
    starts = shapes.prod(1).cumsum(0) - shapes.prod(1)
    value, locations = torch.randn(1, PIXELS, 8, 32), torch.rand(1, queries, 8, 4, 4, 2)
    weights = torch.randn(1, queries, 8, 16).softmax(-1).unflatten(-1, (4, 4))

    def forward(value: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
        return gpu_rivals.mmcv().ms_deform_attn_forward(value, shapes, starts, locations, weights, 64)

    def backward(grad: Tensor, value: Tensor, locations: Tensor, weights: Tensor) -> list[Tensor]:
        to = [torch.zeros_like(t) for t in (value, locations, weights)]
        gpu_rivals.mmcv().ms_deform_attn_backward(value, shapes, starts, locations, weights, grad, *to, 64)
        return to

    def by_grid_sample(value: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
        """Computes what models do without a kernel."""
        sampled = []
        for level, part in enumerate(value.split([height * width for height, width in SIZES], 1)):
            plane = part.flatten(2).transpose(1, 2).reshape(8, 32, *SIZES[level])
            grid = (2 * locations[:, :, :, level] - 1).transpose(1, 2).flatten(0, 1)
            sampled.append(F.grid_sample(plane, grid, align_corners=False))
        of_heads = weights.transpose(1, 2).reshape(8, 1, queries, 16)
        return (torch.stack(sampled, -2).flatten(-2) * of_heads).sum(-1).view(1, 256, queries).transpose(1, 2)

    call = Call(
        lambda v, p, w: torch.ops.polyop.ms_deform_attn(v, shapes, starts, p, w),
        [t.to(dtype) for t in (value, locations, weights)], {"torch": by_grid_sample},
    )  # fmt: skip
    return call.against_mmcv(forward, backward)


differentiable("ms_deform_attn", "4 levels, 900 queries", F32, F16)(lambda dtype: deformable(900, dtype))
differentiable("ms_deform_attn", "4 levels, all pixels as queries", F32, F16)(lambda dtype: deformable(PIXELS, dtype))


def flash(queries: int, dtype: torch.dtype) -> Call:
    heads, channels, points = 8, 32, 8
    shapes = torch.tensor(SIZES)
    starts = shapes.prod(1).cumsum(0) - shapes.prod(1)
    locations, logits = torch.rand(1, queries, heads, 2 * 4 * points), torch.randn(1, queries, heads, 4 * points)
    inputs = [torch.randn(1, PIXELS, heads, channels), torch.cat([locations, logits], -1)]

    def forward(value: Tensor, points_of: Tensor) -> Tensor:
        threads = gpu_rivals.dcnv4_threads(queries, heads * channels // 8, 512)
        return gpu_rivals.dcnv4().flash_deform_attn_forward(value, shapes, starts, points_of, 64, points, 8, threads)

    def backward(grad: Tensor, value: Tensor, points_of: Tensor) -> list[Tensor]:
        threads = gpu_rivals.dcnv4_threads(queries, heads * channels, 256)
        of = gpu_rivals.dcnv4().flash_deform_attn_backward
        return of(value, shapes, starts, points_of, grad, 64, points, 1, threads)

    call = Call(
        lambda v, p: torch.ops.polyop.flash_deform_attn(v, shapes, starts, p, points=points),
        [t.to(dtype) for t in inputs],
    )  # fmt: skip
    return call.against_dcnv4(forward, backward)


differentiable("flash_deform_attn", "4 levels of 8 points, 900 queries", F32, F16)(lambda dtype: flash(900, dtype))
differentiable("flash_deform_attn", "4 levels of 8 points, all pixels as queries", F32, F16)(
    lambda dtype: flash(PIXELS, dtype)
)


@differentiable("scaled_dot_product_attention", "8x900x64", F32, F16, backward=False)
def _(dtype: torch.dtype) -> Call:
    q, k, v = (torch.randn(8, 900, 64).to(dtype) for _ in range(3))

    def composed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.softmax(q @ k.mT / 8, -1) @ v

    call = Call(lambda *t: torch.ops.polyop.scaled_dot_product_attention(*t, None)[0], [q, k, v], {"torch": composed})
    call.flops = 4.0 * 8 * 900 * 900 * 64
    return call


@differentiable("qkv_attention", "16x1,024, 64 channels", F32, F16)
def _(dtype: torch.dtype) -> Call:
    inputs = [torch.randn(16, 1024, 64).to(dtype) for _ in range(3)]
    call = Call(torch.ops.polyop.qkv_attention, inputs, {"torch": F.scaled_dot_product_attention})
    call.flops = 4.0 * 16 * 1024 * 1024 * 64
    return call


@differentiable("neighborhood_attention", "4x56x56, 4 heads of 32, 7x7", F32, F16)
def _(dtype: torch.dtype) -> Call:
    inputs = [torch.randn(4, 56, 56, 4, 32).to(dtype) for _ in range(3)]
    return Call(lambda *t: torch.ops.polyop.neighborhood_attention(*t, kernel_size=[7]), inputs)


@differentiable("selective_scan", "2x1,536, 2,048 steps, 16 states", F32)
def _(dtype: torch.dtype) -> Call:
    steps = [torch.randn(2, 1536, 2048), torch.rand(2, 1536, 2048)]
    states = [-torch.rand(1536, 16), torch.randn(2, 1, 16, 2048), torch.randn(2, 1, 16, 2048)]
    return Call(lambda *t: torch.ops.polyop.selective_scan(*t, None, None, None, None)[0], [*steps, *states])


@differentiable("causal_conv1d", "2x1,536, 2,048 steps, width 4", F32, F16)
def _(dtype: torch.dtype) -> Call:
    x, weight, bias = (t.to(dtype) for t in (torch.randn(2, 1536, 2048), torch.randn(1536, 4), torch.randn(1536)))

    def function(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.ops.polyop.causal_conv1d(x, weight, bias, None, activation="silu")[0]

    def composed(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.silu(F.conv1d(x, weight[:, None], bias, padding=3, groups=1536)[..., :2048])

    return Call(function, [x, weight, bias], {"torch": composed})


@case("softmax", "8x900x900")
def _() -> Contest:
    x = torch.randn(8, 900, 900)
    return Contest(lambda: torch.ops.polyop.softmax(x, axis=-1), [x], {"torch": lambda: torch.softmax(x, -1)})
