# SPDX-License-Identifier: Apache-2.0
"""The layers of DCNv4, whose parameters have the names of its checkpoints."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from polyop.compat.dcnv4.functions import DCNv4Function, FlashDeformAttnFunction

__all__ = ["DCNv4", "FlashDeformAttn"]


def _initialize(layer: nn.Linear, *, zero: bool) -> None:
    if zero:
        nn.init.zeros_(layer.weight)
    else:
        nn.init.xavier_uniform_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


class DCNv4(nn.Module):
    """Deformable convolution of tokens [N, H * W, channels]."""

    def __init__(
        self,
        channels: int = 64,
        kernel_size: int = 3,
        stride: int = 1,
        pad: int = 1,
        dilation: int = 1,
        group: int = 4,
        offset_scale: float = 1.0,
        dw_kernel_size: int | None = None,
        center_feature_scale: bool = False,
        remove_center: bool = False,
        output_bias: bool = True,
        without_pointwise: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        del kwargs  # as the original ignores them
        if channels % group:
            raise ValueError(f"DCNv4: channels: expected a multiple of group = {group}, got {channels}")
        self.channels, self.group, self.group_channels = channels, group, channels // group
        self.kernel_size, self.stride, self.pad, self.dilation = kernel_size, stride, pad, dilation
        self.offset_scale, self.remove_center = offset_scale, int(remove_center)
        self.dw_kernel_size, self.center_feature_scale = dw_kernel_size, center_feature_scale
        self.without_pointwise = without_pointwise
        self.K = group * (kernel_size * kernel_size - self.remove_center)
        if dw_kernel_size is not None:
            self.offset_mask_dw = nn.Conv2d(
                channels, channels, dw_kernel_size, padding=(dw_kernel_size - 1) // 2, groups=channels
            )
        self.offset_mask = nn.Linear(channels, math.ceil(3 * self.K / 8) * 8)
        _initialize(self.offset_mask, zero=True)
        if not without_pointwise:
            self.value_proj = nn.Linear(channels, channels)
            self.output_proj = nn.Linear(channels, channels, bias=output_bias)
            _initialize(self.value_proj, zero=False)
            _initialize(self.output_proj, zero=False)
        if center_feature_scale:
            self.center_feature_scale_proj_weight = nn.Parameter(torch.zeros(group, channels))
            self.center_feature_scale_proj_bias = nn.Parameter(torch.zeros(group))

    def forward(self, input: Tensor, shape: tuple[int, int] | None = None) -> Tensor:
        """`shape` is (H, W); by default the image is square."""
        images, length, _ = input.shape
        height, width = shape if shape is not None else (math.isqrt(length),) * 2
        if height * width != length:
            raise ValueError(f"DCNv4: input: expected {height} * {width} tokens, got {length}")
        x = (input if self.without_pointwise else self.value_proj(input)).unflatten(1, (height, width))
        features = input.unflatten(1, (height, width))
        if self.dw_kernel_size is not None:
            features = self.offset_mask_dw(features.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        sizes = (self.kernel_size, self.stride, self.pad, self.dilation)
        y = DCNv4Function.apply(
            x, self.offset_mask(features), *(size for size in sizes for _ in range(2)), self.group, self.group_channels,
            self.offset_scale, 256, self.remove_center,
        )  # fmt: skip
        if self.center_feature_scale:
            weight, bias = self.center_feature_scale_proj_weight, self.center_feature_scale_proj_bias
            scale = nn.functional.linear(y, weight, bias).sigmoid().repeat_interleave(self.group_channels, -1)
            y = y * (1 - scale) + x * scale
        y = y.reshape(images, length, self.channels)
        return y if self.without_pointwise else self.output_proj(y)


class FlashDeformAttn(nn.Module):
    """Multi-scale deformable attention, whose softmax is in the operator."""

    def __init__(self, d_model: int = 256, n_levels: int = 4, n_heads: int = 8, n_points: int = 4) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"FlashDeformAttn: d_model: expected a multiple of n_heads = {n_heads}, got {d_model}")
        self.im2col_step = 64
        self.d_model, self.n_levels, self.n_heads, self.n_points = d_model, n_levels, n_heads, n_points
        self.sampling_offsets = nn.Linear(d_model, n_heads * n_levels * n_points * 2)
        self.attention_weights = nn.Linear(d_model, n_heads * n_levels * n_points)
        self.value_proj, self.output_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        for layer in (self.sampling_offsets, self.attention_weights):
            _initialize(layer, zero=True)
        for layer in (self.value_proj, self.output_proj):
            _initialize(layer, zero=False)
        angle = torch.arange(n_heads) * (2 * math.pi / n_heads)
        direction = torch.stack([angle.cos(), angle.sin()], -1)  # to the border of a square, a ring for each point
        direction = (direction / direction.abs().amax(-1, keepdim=True))[:, None, None]
        ring = torch.arange(1, n_points + 1)[:, None]
        with torch.no_grad():
            self.sampling_offsets.bias.copy_((direction * ring).expand(-1, n_levels, -1, -1).flatten())

    def forward(
        self,
        query: Tensor,
        reference_points: Tensor,
        input_flatten: Tensor,
        input_spatial_shapes: Tensor,
        input_level_start_index: Tensor,
        input_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """query [N, Q, d_model], reference_points [N, Q, levels, 2 or 4], input_flatten [N, S, d_model]."""
        value = self.value_proj(input_flatten)
        if input_padding_mask is not None:
            value = value.masked_fill(input_padding_mask[..., None], 0.0)
        value = value.unflatten(2, (self.n_heads, -1))
        offsets = self.sampling_offsets(query).unflatten(2, (self.n_heads, self.n_levels, self.n_points, 2))
        logits = self.attention_weights(query).unflatten(2, (self.n_heads, -1))
        points = reference_points[:, :, None, :, None]
        if reference_points.shape[-1] == 2:
            locations = points + offsets / input_spatial_shapes.flip(-1)[None, None, None, :, None]
        elif reference_points.shape[-1] == 4:
            locations = points[..., :2] + offsets / self.n_points * points[..., 2:] * 0.5
        else:
            raise ValueError(
                f"FlashDeformAttn: reference_points: expected 2 or 4 values, got {list(reference_points.shape)}"
            )
        return self.output_proj(
            FlashDeformAttnFunction.apply(
                value,
                input_spatial_shapes,
                input_level_start_index,
                torch.cat([locations.flatten(-3), logits], -1),
                self.im2col_step,
                self.n_points,
            )
        )
