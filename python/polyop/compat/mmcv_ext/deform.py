# SPDX-License-Identifier: Apache-2.0
"""Deformable convolution and attention."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop import functional
from polyop.compat.mmcv_ext._registry import gradients_of, provides


@provides("deform_conv2d")
def deform_conv_forward(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    output: Tensor,
    columns: Tensor,
    ones: Tensor,
    kW: int,
    kH: int,
    dW: int,
    dH: int,
    padW: int,
    padH: int,
    dilationW: int,
    dilationH: int,
    group: int,
    deformable_group: int,
    im2col_step: int,
) -> None:
    del columns, ones, kW, kH, im2col_step
    window = ((dH, dW), (padH, padW), (dilationH, dilationW), group, deformable_group)
    output.copy_(functional.deform_conv2d(input, offset, weight, *window))


@provides("deform_conv2d")
def deform_conv_backward_input(
    input: Tensor,
    offset: Tensor,
    gradOutput: Tensor,
    gradInput: Tensor,
    gradOffset: Tensor,
    weight: Tensor,
    columns: Tensor,
    kW: int,
    kH: int,
    dW: int,
    dH: int,
    padW: int,
    padH: int,
    dilationW: int,
    dilationH: int,
    group: int,
    deformable_group: int,
    im2col_step: int,
) -> None:
    del columns, kW, kH, im2col_step
    window = _window((dH, dW), (padH, padW), (dilationH, dilationW), group, deformable_group)
    of_input, of_offset = gradients_of("deform_conv2d", [input, offset, weight], gradOutput, [0, 1], **window)
    gradInput.copy_(of_input)
    gradOffset.copy_(of_offset)


@provides("deform_conv2d")
def deform_conv_backward_parameters(
    input: Tensor,
    offset: Tensor,
    gradOutput: Tensor,
    gradWeight: Tensor,
    columns: Tensor,
    ones: Tensor,
    kW: int,
    kH: int,
    dW: int,
    dH: int,
    padW: int,
    padH: int,
    dilationW: int,
    dilationH: int,
    group: int,
    deformable_group: int,
    scale: float,
    im2col_step: int,
) -> None:
    del columns, ones, kW, kH, im2col_step
    window = _window((dH, dW), (padH, padW), (dilationH, dilationW), group, deformable_group)
    # Linear in the weight, whose values do not matter.
    (of_weight,) = gradients_of("deform_conv2d", [input, offset, gradWeight], gradOutput, [2], **window)
    gradWeight.add_(of_weight, alpha=scale)


def _window(
    stride: tuple[int, int], padding: tuple[int, int], dilation: tuple[int, int], groups: int, deform_groups: int
) -> dict[str, Any]:
    """Returns the attributes of the operators."""
    return {
        "stride": list(stride),
        "padding": list(padding),
        "dilation": list(dilation),
        "groups": groups,
        "deform_groups": deform_groups,
    }


def _as_read(values: Tensor, size: torch.Size) -> Tensor:
    """Returns offsets or masks with more pixels than the output as MMCV's kernel reads them: as flat values of the
    output's size, per image. DyHead's layers were trained that way."""
    count = values.shape[1] * size[0] * size[1]
    if values.shape[2:] == size or values[0].numel() < count:
        return values
    return values.flatten(1)[:, :count].unflatten(1, (-1, *size)).contiguous()


@provides("modulated_deform_conv2d")
def modulated_deform_conv_forward(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    ones: Tensor,
    offset: Tensor,
    mask: Tensor,
    output: Tensor,
    columns: Tensor,
    kernel_h: int,
    kernel_w: int,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    group: int,
    deformable_group: int,
    with_bias: bool,
) -> None:
    del ones, columns, kernel_h, kernel_w
    window = ((stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), group, deformable_group)
    given = bias if with_bias else None
    offset, mask = (_as_read(t, output.shape[2:]) for t in (offset, mask))
    output.copy_(functional.modulated_deform_conv2d(input, offset, mask, weight, given, *window))


@provides("modulated_deform_conv2d")
def modulated_deform_conv_backward(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    ones: Tensor,
    offset: Tensor,
    mask: Tensor,
    columns: Tensor,
    grad_input: Tensor,
    grad_weight: Tensor,
    grad_bias: Tensor,
    grad_offset: Tensor,
    grad_mask: Tensor,
    grad_output: Tensor,
    kernel_h: int,
    kernel_w: int,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    group: int,
    deformable_group: int,
    with_bias: bool,
) -> None:
    del bias, ones, columns, kernel_h, kernel_w
    window = _window((stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), group, deformable_group)
    inputs = [input, *(_as_read(t, grad_output.shape[2:]) for t in (offset, mask)), weight, None]
    result = gradients_of("modulated_deform_conv2d", inputs, grad_output, [0, 1, 2, 3], **window)
    for to, grad in zip((grad_input, grad_offset, grad_mask, grad_weight), result, strict=True):
        if to.shape == grad.shape:
            to.copy_(grad)
        else:  # of values that are read as in _as_read
            to.zero_().flatten(1)[:, : grad[0].numel()].copy_(grad.flatten(1))
    if with_bias:
        grad_bias.copy_(grad_output.sum((0, 2, 3)))


@provides("ms_deform_attn")
def ms_deform_attn_forward(
    value: Tensor,
    value_spatial_shapes: Tensor,
    value_level_start_index: Tensor,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    im2col_step: int,
) -> Tensor:
    del im2col_step
    return functional.ms_deform_attn(
        value, value_spatial_shapes, value_level_start_index, sampling_locations, attention_weights
    )


@provides("ms_deform_attn")
def ms_deform_attn_backward(
    value: Tensor,
    value_spatial_shapes: Tensor,
    value_level_start_index: Tensor,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    grad_output: Tensor,
    grad_value: Tensor,
    grad_sampling_loc: Tensor,
    grad_attn_weight: Tensor,
    im2col_step: int,
) -> None:
    del im2col_step
    inputs = [value, value_spatial_shapes, value_level_start_index, sampling_locations, attention_weights]
    result = gradients_of("ms_deform_attn", inputs, grad_output, [0, 3, 4])
    for to, grad in zip((grad_value, grad_sampling_loc, grad_attn_weight), result, strict=True):
        to.copy_(grad)
