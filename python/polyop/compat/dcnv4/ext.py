# SPDX-License-Identifier: Apache-2.0
"""`DCNv4.ext`, the compiled part. Arguments that divide the work of a GPU have no effect."""

from __future__ import annotations

from torch import Tensor

from polyop.compat.dcnv3 import attributes
from polyop.compat.mmcv_ext._registry import gradients_of, result_of

__all__ = ["dcnv4_backward", "dcnv4_forward", "flash_deform_attn_backward", "flash_deform_attn_forward"]


def _check(function: str, softmax: bool) -> None:
    if softmax:
        raise ValueError(f"{function}: softmax: expected False")


def dcnv4_forward(
    value: Tensor, p_offset: Tensor, kernel_h: int, kernel_w: int, stride_h: int, stride_w: int, pad_h: int, pad_w: int,
    dilation_h: int, dilation_w: int, group: int, group_channels: int, offset_scale: float, im2col_step: int,
    remove_center: int, d_stride: int = 0, block_thread: int = 0, softmax: bool = False,
) -> Tensor:  # fmt: skip
    """value [N, H, W, G * D], p_offset [N, oh, ow, padded G * P * 3] -> [N, oh, ow, G * D]."""
    del im2col_step, d_stride, block_thread
    _check("dcnv4_forward", softmax)
    window = (kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w)
    named = attributes(window, group, group_channels, offset_scale, remove_center)
    return result_of("dcn_v4", value, p_offset, **named)


def dcnv4_backward(
    value: Tensor, p_offset: Tensor, kernel_h: int, kernel_w: int, stride_h: int, stride_w: int, pad_h: int, pad_w: int,
    dilation_h: int, dilation_w: int, group: int, group_channels: int, offset_scale: float, im2col_step: int,
    grad_output: Tensor, remove_center: int, d_stride: int = 0, block_thread: int = 0, softmax: bool = False,
) -> list[Tensor | None]:  # fmt: skip
    """Returns the gradients of value and p_offset."""
    del im2col_step, d_stride, block_thread
    _check("dcnv4_backward", softmax)
    window = (kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w)
    named = attributes(window, group, group_channels, offset_scale, remove_center)
    return gradients_of("dcn_v4", [value, p_offset], grad_output.contiguous(), [0, 1], **named)


def flash_deform_attn_forward(
    value: Tensor, spatial_shapes: Tensor, level_start_index: Tensor, sampling_loc_attn: Tensor, im2col_step: int,
    K: int, d_stride: int = 0, block_thread: int = 0,  # noqa: N803
) -> Tensor:  # fmt: skip
    """value [N, S, G, D], sampling_loc_attn [N, Q, G, L * K * 3] -> [N, Q, G * D]."""
    del im2col_step, d_stride, block_thread
    return result_of("flash_deform_attn", value, spatial_shapes, level_start_index, sampling_loc_attn, points=K)


def flash_deform_attn_backward(
    value: Tensor, spatial_shapes: Tensor, level_start_index: Tensor, sampling_loc_attn: Tensor, grad_output: Tensor,
    im2col_step: int, K: int, d_stride: int = 0, block_thread: int = 0,  # noqa: N803
) -> list[Tensor | None]:  # fmt: skip
    """Returns the gradients of value and sampling_loc_attn."""
    del im2col_step, d_stride, block_thread
    inputs = [value, spatial_shapes, level_start_index, sampling_loc_attn]
    return gradients_of("flash_deform_attn", inputs, grad_output.contiguous(), [0, 3], points=K)
