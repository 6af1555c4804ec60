# SPDX-License-Identifier: Apache-2.0
"""Pooling of rotated boxes, and between curves."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop import functional
from polyop.compat.mmcv_ext._registry import gradients_of, provides

_ops = torch.ops.polyop


# ---- rotated boxes ---------------------------------------------------------------------------------


@provides("roi_align_rotated")
def roi_align_rotated_forward(
    input: Tensor,
    rois: Tensor,
    output: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
    clockwise: bool,
) -> None:
    sizes = (pooled_height, pooled_width)
    output.copy_(_pool_rotated(input, rois, sizes, spatial_scale, sampling_ratio, aligned, clockwise))


def _pool_rotated(
    input: Tensor, rois: Tensor, sizes: tuple[int, int], scale: float, ratio: int, aligned: bool, clockwise: bool
) -> Tensor:
    return _ops.roi_align_rotated(
        input, rois, output_height=sizes[0], output_width=sizes[1], spatial_scale=scale, sampling_ratio=ratio,
        aligned=int(aligned), clockwise=int(clockwise),
    )  # fmt: skip


@provides("roi_align_rotated")
def roi_align_rotated_backward(
    grad_output: Tensor,
    rois: Tensor,
    grad_input: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
    clockwise: bool,
) -> None:
    (grad,) = gradients_of(
        "roi_align_rotated", [grad_input, rois], grad_output, [0], output_height=pooled_height,
        output_width=pooled_width, spatial_scale=spatial_scale, sampling_ratio=sampling_ratio, aligned=int(aligned),
        clockwise=int(clockwise),
    )  # fmt: skip
    grad_input.copy_(grad)


@provides("riroi_align_rotated")
def riroi_align_rotated_forward(
    features: Tensor,
    rois: Tensor,
    output: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    num_samples: int,
    num_orientations: int,
    clockwise: bool,
) -> None:
    sizes = (pooled_height, pooled_width)
    how = (spatial_scale, num_samples, num_orientations, clockwise)
    output.copy_(functional.riroi_align_rotated(features, rois, sizes, *how))


@provides("riroi_align_rotated")
def riroi_align_rotated_backward(
    top_grad: Tensor,
    rois: Tensor,
    bottom_grad: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    num_samples: int,
    num_orientations: int,
    clockwise: bool,
) -> None:
    (grad,) = gradients_of(
        "riroi_align_rotated", [bottom_grad, rois], top_grad, [0], pooled_height=pooled_height,
        pooled_width=pooled_width, spatial_scale=spatial_scale, num_samples=num_samples,
        num_orientations=num_orientations, clockwise=int(clockwise),
    )  # fmt: skip
    bottom_grad.copy_(grad)


def _boxes_of_pixels(features: Tensor, best_bboxes: Tensor) -> Tensor:
    """Returns a box per pixel [N, H, W, 5] of boxes of that shape or, as in mmrotate, [N * H * W, 5]."""
    return best_bboxes.reshape(features.shape[0], *features.shape[2:], 5)


@provides("rotated_feature_align")
def rotated_feature_align_forward(
    features: Tensor, best_bboxes: Tensor, output: Tensor, spatial_scale: float, points: int
) -> None:
    boxes = _boxes_of_pixels(features, best_bboxes)
    output.copy_(_ops.rotated_feature_align(features, boxes, spatial_scale=spatial_scale, points=points))


@provides("rotated_feature_align")
def rotated_feature_align_backward(
    top_grad: Tensor, best_bboxes: Tensor, bottom_grad: Tensor, spatial_scale: float, points: int
) -> None:
    boxes = _boxes_of_pixels(bottom_grad, best_bboxes)
    how = {"spatial_scale": spatial_scale, "points": points}
    (grad,) = gradients_of("rotated_feature_align", [bottom_grad, boxes], top_grad, [0], **how)
    bottom_grad.copy_(grad)


# ---- curves ----------------------------------------------------------------------------------------


@provides("bezier_align")
def bezier_align_forward(
    input: Tensor,
    rois: Tensor,
    output: Tensor,
    aligned_height: int,
    aligned_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
) -> None:
    sizes = (aligned_height, aligned_width)
    output.copy_(functional.bezier_align(input, rois, sizes, spatial_scale, sampling_ratio, aligned))


@provides("bezier_align")
def bezier_align_backward(
    grad_output: Tensor,
    rois: Tensor,
    grad_input: Tensor,
    aligned_height: int,
    aligned_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
) -> None:
    (grad,) = gradients_of(
        "bezier_align", [grad_input, rois], grad_output, [0], output_height=aligned_height, output_width=aligned_width,
        spatial_scale=spatial_scale, sampling_ratio=sampling_ratio, aligned=int(aligned),
    )  # fmt: skip
    grad_input.copy_(grad)
