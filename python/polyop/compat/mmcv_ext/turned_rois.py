"""Pooling of turned boxes, and between curves."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from polyop.compat.mmcv_ext._registry import gradients, provides
from polyop.compat.mmcv_ext._sampling import bilinear

_ops = torch.ops.polyop


# ---- turned boxes ----------------------------------------------------------------------------------


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
    output.copy_(_turned(input, rois, sizes, spatial_scale, sampling_ratio, aligned, clockwise))


def _turned(
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
        return _turned(features, rois, sizes, spatial_scale, sampling_ratio, aligned, clockwise)

    grad_input.copy_(gradients(forward, [grad_input], grad_output)[0])


@provides("roi_align_rotated")
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
    output.copy_(_rotation_invariant(features, rois, sizes, spatial_scale, num_samples, num_orientations, clockwise))


def _rotation_invariant(
    features: Tensor, rois: Tensor, sizes: tuple[int, int], scale: float, samples: int, orientations: int,
    clockwise: bool,
) -> Tensor:  # fmt: skip
    """Turned boxes pooled, and their channels of orientations shifted by the boxes' angles, between two if need be."""
    pooled = _turned(features, rois, sizes, scale, samples, False, clockwise)
    pooled = pooled.unflatten(1, (-1, orientations))
    turn = rois[:, 5] * orientations / (2 * math.pi)
    whole = torch.floor(turn)
    part = (turn - whole)[:, None, None, None, None]
    source = (torch.arange(orientations, device=rois.device) - whole[:, None].long()) % orientations

    def shifted(places: Tensor) -> Tensor:
        return pooled.gather(2, places[:, None, :, None, None].expand_as(pooled))

    return ((1 - part) * shifted(source) + part * shifted((source + 1) % orientations)).flatten(1, 2)


@provides("roi_align_rotated")
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
        return _rotation_invariant(features, rois, sizes, spatial_scale, num_samples, num_orientations, clockwise)

    bottom_grad.copy_(gradients(forward, [bottom_grad], top_grad)[0])


@provides("rotated_feature_align")
def rotated_feature_align_forward(
    features: Tensor, best_bboxes: Tensor, output: Tensor, spatial_scale: float, points: int
) -> None:
    output.copy_(_ops.rotated_feature_align(features, best_bboxes, spatial_scale=spatial_scale, points=points))


@provides("rotated_feature_align")
def rotated_feature_align_backward(
    top_grad: Tensor, best_bboxes: Tensor, bottom_grad: Tensor, spatial_scale: float, points: int
) -> None:
    def forward(features: Tensor) -> Tensor:
        return _ops.rotated_feature_align(features, best_bboxes, spatial_scale=spatial_scale, points=points)

    bottom_grad.copy_(gradients(forward, [bottom_grad], top_grad)[0])


# ---- curves ----------------------------------------------------------------------------------------


def _bezier_align(
    input: Tensor, beziers: Tensor, sizes: tuple[int, int], scale: float, ratio: int, aligned: bool
) -> Tensor:
    """Averages of samples around points between two cubic curves; a row of beziers is (picture, 8 points x, y): the upper
    curve's from left to right, then the lower one's from right to left."""
    height, width = sizes
    points = beziers[:, 1:].view(-1, 8, 2) * scale
    upper, lower = points[:, :4], points[:, 4:].flip(1)
    u = (torch.arange(width, device=input.device) / width).to(beziers)
    v = (torch.arange(height, device=input.device) / height).to(beziers)[:, None, None]
    cubic = torch.stack([(1 - u) ** 3, 3 * u * (1 - u) ** 2, 3 * u * u * (1 - u), u**3], 1)
    extents = torch.maximum((upper[:, 0] - upper[:, 3]).abs(), (lower[:, 0] - lower[:, 3]).abs())
    if not aligned:
        extents = extents.clamp(min=1)
    pooled = []
    for n, picture in enumerate(beziers[:, 0].long().tolist()):
        centers = (cubic @ lower[n]) * v + (cubic @ upper[n]) * (1 - v) - (0.5 if aligned else 0.0)
        bin_w, bin_h = extents[n, 0] / width, extents[n, 1] / height
        grid_h, grid_w = (ratio, ratio) if ratio > 0 else (math.ceil(bin_h), math.ceil(bin_w))
        if grid_h * grid_w == 0:
            pooled.append(input[picture].new_zeros(input.shape[1], height, width) * input[picture].sum())
            continue
        y = ((torch.arange(grid_h, device=input.device) + 0.5) / grid_h - 0.5) * bin_h
        x = ((torch.arange(grid_w, device=input.device) + 0.5) / grid_w - 0.5) * bin_w
        y, x = torch.broadcast_tensors(
            centers[..., 1, None, None] + y[:, None], centers[..., 0, None, None] + x[None, :]
        )
        pooled.append(bilinear(input[picture], y, x).mean((-1, -2)))
    return torch.stack(pooled) if pooled else input.new_zeros(0, input.shape[1], height, width)


@provides()
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
    output.copy_(_bezier_align(input, rois, sizes, spatial_scale, sampling_ratio, aligned))


@provides()
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
        return _bezier_align(features, rois, sizes, spatial_scale, sampling_ratio, aligned)

    if len(rois):
        grad_input.copy_(gradients(forward, [grad_input], grad_output)[0])
