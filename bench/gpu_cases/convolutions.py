# SPDX-License-Identifier: Apache-2.0
"""Deformable convolutions and rotated filters."""

from __future__ import annotations

import gpu_rivals
import torch
from torch import Tensor

import polyop.functional as ops
from gpu_cases.cases import F16, F32, Call, differentiable

N, CHANNELS, SIDE = 2, 256, 64
FLOPS = 2.0 * N * CHANNELS * CHANNELS * 9 * SIDE * SIDE
SQUARE = [3, 3, 1, 1, 1, 1, 1, 1]  # a kernel of 3 x 3, and stride, padding and dilation 1


def tensors(dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Returns features, offsets, masks, weights and biases."""
    shapes = [(N, CHANNELS, SIDE, SIDE), (N, 18, SIDE, SIDE), (N, 9, SIDE, SIDE), (CHANNELS, CHANNELS, 3, 3)]
    x, offset, mask, weight = (torch.randn(*shape) for shape in shapes)
    return (
        x.to(dtype),
        offset.to(dtype),
        mask.sigmoid().to(dtype),
        (weight * 0.02).to(dtype),
        torch.zeros(CHANNELS).to(dtype),
    )


@differentiable("deform_conv2d", "2x256x64x64, 3x3", F32, F16)
def _(dtype: torch.dtype) -> Call:
    x, offset, _, weight, bias = tensors(dtype)
    call = Call(lambda *t: ops.deform_conv2d(*t, padding=1), [x, offset, weight], flops=FLOPS)
    none = x.new_empty(N, 0)
    call.against_torchvision(
        lambda x, o, w: torch.ops.torchvision.deform_conv2d(x, w, o, none, bias, 1, 1, 1, 1, 1, 1, 1, 1, False)
    )

    def forward(x: Tensor, offset: Tensor, weight: Tensor) -> Tensor:
        to, buffers = x.new_empty(x.shape), [x.new_empty(0), x.new_empty(0)]
        gpu_rivals.mmcv().deform_conv_forward(x, weight, offset, to, *buffers, *SQUARE, 1, 1, N)
        return to

    def backward(grad: Tensor, x: Tensor, offset: Tensor, weight: Tensor) -> list[Tensor]:
        to, buffers = [torch.zeros_like(t) for t in (x, offset, weight)], [x.new_empty(0), x.new_empty(0)]
        library = gpu_rivals.mmcv()
        library.deform_conv_backward_input(x, offset, grad, to[0], to[1], weight, buffers[0], *SQUARE, 1, 1, N)
        library.deform_conv_backward_parameters(x, offset, grad, to[2], *buffers, *SQUARE, 1, 1, 1.0, N)
        return to

    return call.against_mmcv(forward, backward)


@differentiable("modulated_deform_conv2d", "2x256x64x64, 3x3", F32, F16)
def _(dtype: torch.dtype) -> Call:
    inputs = tensors(dtype)
    call = Call(lambda *t: ops.modulated_deform_conv2d(*t, padding=1), [*inputs], flops=FLOPS)
    call.against_torchvision(
        lambda x, o, m, w, b: torch.ops.torchvision.deform_conv2d(x, w, o, m, b, 1, 1, 1, 1, 1, 1, 1, 1, True)
    )

    def forward(x: Tensor, offset: Tensor, mask: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        to, buffers = x.new_empty(x.shape), [x.new_empty(0), x.new_empty(0)]
        gpu_rivals.mmcv().modulated_deform_conv_forward(
            x, weight, bias, buffers[0], offset, mask, to, buffers[1], *SQUARE, 1, 1, True
        )
        return to

    def backward(grad: Tensor, x: Tensor, offset: Tensor, mask: Tensor, weight: Tensor, bias: Tensor) -> list[Tensor]:
        to, buffers = [torch.zeros_like(t) for t in (x, offset, mask, weight, bias)], [x.new_empty(0), x.new_empty(0)]
        of_x, of_offset, of_mask, of_weight, of_bias = to
        gpu_rivals.mmcv().modulated_deform_conv_backward(
            x, weight, bias, buffers[0], offset, mask, buffers[1], of_x, of_weight, of_bias, of_offset, of_mask, grad,
            *SQUARE, 1, 1, True,
        )  # fmt: skip
        return to

    return call.against_mmcv(forward, backward)


@differentiable("active_rotated_filter", "256x256x8x3x3, 8 rotations")
def _(dtype: torch.dtype) -> Call:
    indices = torch.stack([torch.randperm(72) for _ in range(8)], 1).reshape(8, 3, 3, 8).int() + 1

    def forward(t: Tensor) -> Tensor:
        to = t.new_empty(256 * 8, 256 * 8, 3, 3)
        gpu_rivals.mmcv().active_rotated_filter_forward(t, indices, to)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        gpu_rivals.mmcv().active_rotated_filter_backward(grad, indices, to)
        return [to]

    call = Call(lambda t: torch.ops.polyop.active_rotated_filter(t, indices), [torch.randn(256, 256, 8, 3, 3)])
    return call.against_mmcv(forward, backward)


@differentiable("dcn_v4", "4x56x56, 8 groups of 32, 3x3", F32, F16)
def _(dtype: torch.dtype) -> Call:
    images, side, groups, channels = 4, 56, 8, 32
    inputs = [torch.randn(images, side, side, groups * channels), torch.randn(images, side, side, groups * 27)]
    window, pixels = [3, 3, 1, 1, 1, 1, 1, 1, groups, channels, 1.0], images * side * side

    def forward(x: Tensor, offsets: Tensor) -> Tensor:
        threads = gpu_rivals.dcnv4_threads(pixels, groups * channels // 8, 512)
        return gpu_rivals.dcnv4().dcnv4_forward(x, offsets, *window, 256, 0, 8, threads, False)

    def backward(grad: Tensor, x: Tensor, offsets: Tensor) -> list[Tensor]:
        threads = gpu_rivals.dcnv4_threads(pixels, groups * channels, 256)
        return gpu_rivals.dcnv4().dcnv4_backward(x, offsets, *window, 256, grad, 0, 1, threads, False)

    call = Call(
        lambda x, o: torch.ops.polyop.dcn_v4(x, o, pad_h=1, pad_w=1, group=groups, group_channels=channels),
        [t.to(dtype) for t in inputs],
    )  # fmt: skip
    return call.against_dcnv4(forward, backward)
