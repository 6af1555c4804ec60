# SPDX-License-Identifier: Apache-2.0
"""The compiled part of packages with multi-scale deformable attention: `MultiScaleDeformableAttention` (Deformable
DETR, DINO, Mask2Former, OneFormer, Co-DETR, …) and `groundingdino._C`."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from polyop import functional
from polyop.compat.mmcv_ext._registry import gradients, gradients_of

__all__ = ["ms_deform_attn_backward", "ms_deform_attn_forward"]


def ms_deform_attn_forward(
    value: Tensor,
    spatial_shapes: Tensor,
    level_start_index: Tensor,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    im2col_step: int,
) -> Tensor:
    """value [N, S, M, D], spatial_shapes [L, 2], level_start_index [L], sampling_locations [N, Q, M, L, P, 2],
    attention_weights [N, Q, M, L, P] -> [N, Q, M * D]. `im2col_step` has no effect."""
    del im2col_step
    if value.dtype == torch.float64:
        return _in_double(value, spatial_shapes, level_start_index, sampling_locations, attention_weights)
    return functional.ms_deform_attn(value, spatial_shapes, level_start_index, sampling_locations, attention_weights)


def ms_deform_attn_backward(
    value: Tensor,
    spatial_shapes: Tensor,
    level_start_index: Tensor,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    grad_output: Tensor,
    im2col_step: int,
) -> list[Tensor]:
    """Returns the gradients of value, sampling_locations and attention_weights."""
    del im2col_step
    if value.dtype == torch.float64:

        def forward(value: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
            return _in_double(value, spatial_shapes, level_start_index, locations, weights)

        return list(gradients(forward, (value, sampling_locations, attention_weights), grad_output))
    inputs = [value, spatial_shapes, level_start_index, sampling_locations, attention_weights]
    return list(gradients_of("ms_deform_attn", inputs, grad_output, [0, 3, 4]))


def _in_double(value: Tensor, shapes: Tensor, starts: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
    """The formula, for the type that the operator lacks and in which gradients are checked."""
    images, _, heads, channels = value.shape
    sampled = []
    for level, ((height, width), start) in enumerate(zip(shapes.tolist(), starts.tolist(), strict=True)):
        planes = value[:, start : start + height * width].permute(0, 2, 3, 1).reshape(-1, channels, height, width)
        grid = 2 * locations[:, :, :, level].transpose(1, 2).flatten(0, 1) - 1
        sampled.append(grid_sample(planes, grid, align_corners=False))
    scale = weights.transpose(1, 2).flatten(3).flatten(0, 1)[:, None]
    result = (torch.stack(sampled, -2).flatten(-2) * scale).sum(-1)
    return result.view(images, heads * channels, -1).transpose(1, 2).contiguous()
