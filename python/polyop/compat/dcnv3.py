# SPDX-License-Identifier: Apache-2.0
"""`DCNv3`, the compiled part of InternImage, also on the CPU. f64 is computed by PyTorch's operators."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from polyop.compat.mmcv_ext._registry import gradients_of, result_of

__all__ = ["dcnv3_backward", "dcnv3_forward"]

_WINDOW = ("kernel_h", "kernel_w", "stride_h", "stride_w", "pad_h", "pad_w", "dilation_h", "dilation_w")


def attributes(window: tuple[int, ...], group: int, channels: int, scale: float, remove_center: int) -> dict[str, Any]:
    """Returns the attributes of dcn_v3 and dcn_v4 for a window (kernel_h, kernel_w, stride_h, …, dilation_w)."""
    return {
        **dict(zip(_WINDOW, window, strict=True)),
        "group": group,
        "group_channels": channels,
        "offset_scale": scale,
        "remove_center": int(remove_center),
    }


def dcnv3_forward(
    input: Tensor, offset: Tensor, mask: Tensor, kernel_h: int, kernel_w: int, stride_h: int, stride_w: int, pad_h: int,
    pad_w: int, dilation_h: int, dilation_w: int, group: int, group_channels: int, offset_scale: float,
    im2col_step: int, remove_center: int = 0,
) -> Tensor:  # fmt: skip
    """input [N, H, W, G * D], offset [N, oh, ow, G * P * 2], mask [N, oh, ow, G * P] -> [N, oh, ow, G * D].
    `im2col_step` has no effect."""
    del im2col_step
    window = (kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w)
    named = attributes(window, group, group_channels, offset_scale, remove_center)
    return result_of("dcn_v3", input, offset, mask, **named)


def dcnv3_backward(
    input: Tensor, offset: Tensor, mask: Tensor, kernel_h: int, kernel_w: int, stride_h: int, stride_w: int, pad_h: int,
    pad_w: int, dilation_h: int, dilation_w: int, group: int, group_channels: int, offset_scale: float,
    grad_output: Tensor, im2col_step: int, remove_center: int = 0,
) -> list[Tensor | None]:  # fmt: skip
    """Returns the gradients of input, offset and mask."""
    del im2col_step
    window = (kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w)
    named = attributes(window, group, group_channels, offset_scale, remove_center)
    return gradients_of("dcn_v3", [input, offset, mask], grad_output.contiguous(), [0, 1, 2], **named)
