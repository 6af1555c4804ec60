# SPDX-License-Identifier: Apache-2.0
"""The functions of DCNv4 under the names of its autograd functions. An export has polyop's nodes."""

from __future__ import annotations

from torch import Tensor

from polyop import functional

__all__ = ["DCNv4Function", "FlashDeformAttnFunction"]


class DCNv4Function:
    @staticmethod
    def apply(
        input: Tensor, offset_mask: Tensor, kernel_h: int, kernel_w: int, stride_h: int, stride_w: int, pad_h: int,
        pad_w: int, dilation_h: int, dilation_w: int, group: int, group_channels: int, offset_scale: float,
        im2col_step: int, remove_center: int,
    ) -> Tensor:  # fmt: skip
        """input [N, H, W, G * D], offset_mask [N, oh, ow, padded G * P * 3] -> [N, oh, ow, G * D]."""
        del im2col_step
        return functional.dcn_v4(
            input, offset_mask.to(input.dtype), (kernel_h, kernel_w), (stride_h, stride_w), (pad_h, pad_w),
            (dilation_h, dilation_w), group, group_channels, offset_scale, bool(remove_center),
        )  # fmt: skip


class FlashDeformAttnFunction:
    @staticmethod
    def apply(
        value: Tensor,
        value_spatial_shapes: Tensor,
        value_level_start_index: Tensor,
        sampling_loc_attn: Tensor,
        im2col_step: int,
        K: int = 8,  # noqa: N803
    ) -> Tensor:
        """value [N, S, G, D], sampling_loc_attn [N, Q, G, L * K * 3] -> [N, Q, G * D]."""
        del im2col_step
        return functional.flash_deform_attn(
            value, value_spatial_shapes, value_level_start_index, sampling_loc_attn.to(value.dtype), K
        )
