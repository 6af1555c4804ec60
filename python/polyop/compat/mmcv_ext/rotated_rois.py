"""Pooling of rotated boxes, and between curves."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop import functional
from polyop.compat.mmcv_ext._registry import gradients, provides

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
    def forward(features: Tensor) -> Tensor:
        sizes = (pooled_height, pooled_width)
        return _pool_rotated(features, rois, sizes, spatial_scale, sampling_ratio, aligned, clockwise)

    grad_input.copy_(gradients(forward, [grad_input], grad_output)[0])


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
    def forward(features: Tensor) -> Tensor:
        sizes = (pooled_height, pooled_width)
        how = (spatial_scale, num_samples, num_orientations, clockwise)
        return functional.riroi_align_rotated(features, rois, sizes, *how)

    bottom_grad.copy_(gradients(forward, [bottom_grad], top_grad)[0])


def _rotated_feature_align(features: Tensor, best_bboxes: Tensor, spatial_scale: float, points: int) -> Tensor:
    """best_rbboxes: a box per pixel, [N, H, W, 5] or, as in mmrotate, [N * H * W, 5]."""
    boxes = best_bboxes.reshape(features.shape[0], *features.shape[2:], 5)
    return _ops.rotated_feature_align(features, boxes, spatial_scale=spatial_scale, points=points)


@provides("rotated_feature_align")
def rotated_feature_align_forward(
    features: Tensor, best_bboxes: Tensor, output: Tensor, spatial_scale: float, points: int
) -> None:
    output.copy_(_rotated_feature_align(features, best_bboxes, spatial_scale, points))


@provides("rotated_feature_align")
def rotated_feature_align_backward(
    top_grad: Tensor, best_bboxes: Tensor, bottom_grad: Tensor, spatial_scale: float, points: int
) -> None:
    def forward(features: Tensor) -> Tensor:
        return _rotated_feature_align(features, best_bboxes, spatial_scale, points)

    bottom_grad.copy_(gradients(forward, [bottom_grad], top_grad)[0])


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
    def forward(features: Tensor) -> Tensor:
        sizes = (aligned_height, aligned_width)
        return functional.bezier_align(features, rois, sizes, spatial_scale, sampling_ratio, aligned)

    grad_input.copy_(gradients(forward, [grad_input], grad_output)[0])
