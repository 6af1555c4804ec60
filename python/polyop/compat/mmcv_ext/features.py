# SPDX-License-Identifier: Apache-2.0
"""Operators on feature maps, without pooling of boxes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from polyop import functional
from polyop.compat.mmcv_ext._registry import gradients_of, provides

_ops = torch.ops.polyop


# ---- CARAFE ----------------------------------------------------------------------------------------


def _carafe(features: Tensor, masks: Tensor, kernel_size: int, group_size: int, scale_factor: int) -> Tensor:
    return _ops.carafe(features, masks, kernel_size=kernel_size, group_size=group_size, scale_factor=scale_factor)


@provides("carafe")
def carafe_naive_forward(
    features: Tensor, masks: Tensor, output: Tensor, kernel_size: int, group_size: int, scale_factor: int
) -> None:
    output.copy_(_carafe(features, masks, kernel_size, group_size, scale_factor))


@provides("carafe")
def carafe_naive_backward(
    top_grad: Tensor,
    features: Tensor,
    masks: Tensor,
    bottom_grad: Tensor,
    mask_grad: Tensor,
    kernel_size: int,
    group_size: int,
    scale_factor: int,
) -> None:
    sizes = {"kernel_size": kernel_size, "group_size": group_size, "scale_factor": float(scale_factor)}
    of_features, of_masks = gradients_of("carafe", [features, masks], top_grad, [0, 1], **sizes)
    bottom_grad.copy_(of_features)
    mask_grad.copy_(of_masks)


@provides("carafe")
def carafe_forward(
    features: Tensor,
    masks: Tensor,
    rfeatures: Tensor,
    routput: Tensor,
    rmasks: Tensor,
    output: Tensor,
    kernel_size: int,
    group_size: int,
    scale_factor: int,
) -> None:
    """MMCV stores rfeatures, in channels-last layout, only for the backward pass. Here they keep their layout."""
    del routput, rmasks
    rfeatures.copy_(features)
    output.copy_(_carafe(features, masks, kernel_size, group_size, scale_factor))


@provides("carafe")
def carafe_backward(
    top_grad: Tensor,
    rfeatures: Tensor,
    masks: Tensor,
    rtop_grad: Tensor,
    rbottom_grad_hs: Tensor,
    rbottom_grad: Tensor,
    rmask_grad: Tensor,
    bottom_grad: Tensor,
    mask_grad: Tensor,
    kernel_size: int,
    group_size: int,
    scale_factor: int,
) -> None:
    del rtop_grad, rbottom_grad_hs, rbottom_grad, rmask_grad
    sizes = (kernel_size, group_size, scale_factor)
    carafe_naive_backward(top_grad, rfeatures, masks, bottom_grad, mask_grad, *sizes)


# ---- PSANet ----------------------------------------------------------------------------------------


_PSA_TYPES = ("collect", "distribute")


def _psa_mask(input: Tensor, psa_type: int, h_mask: int, w_mask: int) -> Tensor:
    """Pads a mask of even size, which has one position more after its pixel than before, to an odd size with 0 in
    front."""
    rows, columns = h_mask | 1, w_mask | 1
    if (rows, columns) != (h_mask, w_mask):
        masks = input.unflatten(1, (h_mask, w_mask))
        input = F.pad(masks, (0, 0, 0, 0, columns - w_mask, 0, rows - h_mask, 0)).flatten(1, 2)
    return _ops.psa_mask(input, psa_type=_PSA_TYPES[psa_type], mask_size=[rows, columns])


@provides("psa_mask")
def psamask_forward(
    input: Tensor,
    output: Tensor,
    psa_type: int,
    num_: int,
    h_feature: int,
    w_feature: int,
    h_mask: int,
    w_mask: int,
    half_h_mask: int,
    half_w_mask: int,
) -> None:
    del num_, h_feature, w_feature, half_h_mask, half_w_mask
    output.copy_(_psa_mask(input, psa_type, h_mask, w_mask))


@provides("psa_mask")
def psamask_backward(
    grad_output: Tensor,
    grad_input: Tensor,
    psa_type: int,
    num_: int,
    h_feature: int,
    w_feature: int,
    h_mask: int,
    w_mask: int,
    half_h_mask: int,
    half_w_mask: int,
) -> None:
    del num_, h_feature, w_feature, half_h_mask, half_w_mask
    rows, columns = h_mask | 1, w_mask | 1
    shape = (grad_output.shape[0], rows * columns, *grad_output.shape[2:])
    moved = grad_output.new_empty(shape)  # the operator only moves values: they do not matter
    of_masks = {"psa_type": _PSA_TYPES[psa_type], "mask_size": [rows, columns]}
    (grad,) = gradients_of("psa_mask", [moved], grad_output, [0], **of_masks)
    grad_input.copy_(grad.unflatten(1, (rows, columns))[:, rows - h_mask :, columns - w_mask :].flatten(1, 2))


# ---- convolution of some pixels --------------------------------------------------------------------


@provides()
def masked_im2col_forward(
    im: Tensor,
    mask_h_idx: Tensor,
    mask_w_idx: Tensor,
    col: Tensor,
    kernel_h: int,
    kernel_w: int,
    pad_h: int,
    pad_w: int,
) -> None:
    """col [C * kernel_h * kernel_w, pixels]: the neighbourhoods of the pixels, 0 outside the image."""
    padded = F.pad(im[0], (pad_w, kernel_w - 1 - pad_w, pad_h, kernel_h - 1 - pad_h))
    rows = mask_h_idx + torch.arange(kernel_h, device=im.device)[:, None]
    columns = mask_w_idx + torch.arange(kernel_w, device=im.device)[:, None]
    col.copy_(padded[:, rows[:, None], columns[None]].flatten(0, 2))


@provides()
def masked_col2im_forward(
    col: Tensor, mask_h_idx: Tensor, mask_w_idx: Tensor, im: Tensor, height: int, width: int, channels: int
) -> None:
    del height, width, channels
    im[0, :, mask_h_idx, mask_w_idx] = col


# ---- filters of several orientations (ORN) ---------------------------------------------------------


@provides("active_rotated_filter")
def active_rotated_filter_forward(input: Tensor, indices: Tensor, output: Tensor) -> None:
    output.copy_(_ops.active_rotated_filter(input, indices))


@provides("active_rotated_filter")
def active_rotated_filter_backward(grad_out: Tensor, indices: Tensor, grad_in: Tensor) -> None:
    # The operator only moves values: they do not matter.
    (grad,) = gradients_of("active_rotated_filter", [grad_in, indices], grad_out, [0])
    grad_in.copy_(grad)


# ---- video -----------------------------------------------------------------------------------------


def _tin_shift(input: Tensor, shift: Tensor, sign: int) -> Tensor:
    """Shifts the channels of input [N, T, C, HW] along T, by shift [N, groups] per group of channels; fills with 0."""
    frames, channels = input.shape[1:3]
    moved = shift.long().repeat_interleave(channels // shift.shape[1], 1) * sign
    source = torch.arange(frames, device=input.device)[None, :, None] - moved[:, None]
    inside = ((source >= 0) & (source < frames))[..., None]
    source = source.clamp(0, frames - 1)[..., None].expand_as(input)
    return torch.where(inside, input.gather(1, source), 0)


@provides()
def tin_shift_forward(input: Tensor, shift: Tensor, output: Tensor) -> None:
    output.copy_(_tin_shift(input.flatten(3), shift, 1).view_as(output))


@provides()
def tin_shift_backward(grad_output: Tensor, shift: Tensor, grad_input: Tensor) -> None:
    grad_input.copy_(_tin_shift(grad_output.flatten(3), shift, -1).view_as(grad_input))


def _correlation(
    input1: Tensor, input2: Tensor, kernel: tuple[int, int], patch: tuple[int, int], pad: tuple[int, int],
    dilation: tuple[int, int], dilation_patch: tuple[int, int], stride: tuple[int, int],
) -> Tensor:  # fmt: skip
    """A patch of MMCV's is the number of displacements per axis."""
    return functional.correlation(input1, input2, kernel, (patch[0] - 1) // 2, stride, pad, dilation, dilation_patch)


@provides("correlation")
def correlation_forward(
    input1: Tensor,
    input2: Tensor,
    output: Tensor,
    kH: int,
    kW: int,
    patchH: int,
    patchW: int,
    padH: int,
    padW: int,
    dilationH: int,
    dilationW: int,
    dilation_patchH: int,
    dilation_patchW: int,
    dH: int,
    dW: int,
) -> None:
    window = ((kH, kW), (patchH, patchW), (padH, padW), (dilationH, dilationW))
    output.copy_(_correlation(input1, input2, *window, (dilation_patchH, dilation_patchW), (dH, dW)))


@provides("correlation")
def correlation_backward(
    grad_output: Tensor,
    input1: Tensor,
    input2: Tensor,
    grad_input1: Tensor,
    grad_input2: Tensor,
    kH: int,
    kW: int,
    patchH: int,
    patchW: int,
    padH: int,
    padW: int,
    dilationH: int,
    dilationW: int,
    dilation_patchH: int,
    dilation_patchW: int,
    dH: int,
    dW: int,
) -> None:
    window = {
        "kernel_size": [kH, kW],
        "max_displacement": (patchH - 1) // 2,
        "stride": [dH, dW],
        "padding": [padH, padW],
        "dilation": [dilationH, dilationW],
        "dilation_patch": [dilation_patchH, dilation_patchW],
    }
    of_first, of_second = gradients_of("correlation", [input1, input2], grad_output, [0, 1], **window)
    grad_input1.copy_(of_first)
    grad_input2.copy_(of_second)


# ---- batch normalization over processes: MMCV sums between these steps ---------------------------------


def _of_channels(values: Tensor) -> Tensor:
    return values.float()[None, :, None]


@provides()
def sync_bn_forward_mean(input: Tensor, mean: Tensor) -> None:
    mean.copy_(input.float().mean((0, 2)))


@provides()
def sync_bn_forward_var(input: Tensor, mean: Tensor, var: Tensor) -> None:
    var.copy_(((input.float() - _of_channels(mean)) ** 2).mean((0, 2)))


@provides()
def sync_bn_forward_output(
    input: Tensor,
    mean: Tensor,
    var: Tensor,
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    norm: Tensor,
    std: Tensor,
    output: Tensor,
    eps: float,
    momentum: float,
    group_size: int,
) -> None:
    std.copy_((var + eps).sqrt())
    norm.copy_((input.float() - _of_channels(mean)) / _of_channels(std))
    output.copy_(norm * _of_channels(weight) + _of_channels(bias))
    momentum = float(momentum)
    count = input.shape[0] * input.shape[2] * group_size
    running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
    running_var.mul_(1 - momentum).add_(var * (count / (count - 1) if count > 1 else 1), alpha=momentum)


@provides()
def sync_bn_backward_param(grad_output: Tensor, norm: Tensor, grad_weight: Tensor, grad_bias: Tensor) -> None:
    grad_weight.copy_((grad_output.float() * norm).sum((0, 2)))
    grad_bias.copy_(grad_output.float().sum((0, 2)))


@provides()
def sync_bn_backward_data(
    grad_output: Tensor,
    weight: Tensor,
    grad_weight: Tensor,
    grad_bias: Tensor,
    norm: Tensor,
    std: Tensor,
    grad_input: Tensor,
) -> None:
    count = grad_output.shape[0] * grad_output.shape[2]
    mean = (_of_channels(grad_weight) * norm + _of_channels(grad_bias)) / count
    grad_input.copy_(_of_channels(weight) * (grad_output.float() - mean) / _of_channels(std))
