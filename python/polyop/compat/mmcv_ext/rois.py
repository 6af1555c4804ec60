# SPDX-License-Identifier: Apache-2.0
"""Pooling of axis-aligned boxes."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from polyop.compat.mmcv_ext._registry import gradients, gradients_of, provides
from polyop.compat.mmcv_ext._sampling import bilinear, corners

_ops = torch.ops.polyop


@provides("roi_align")
def roi_align_forward(
    input: Tensor,
    rois: Tensor,
    output: Tensor,
    argmax_y: Tensor,
    argmax_x: Tensor,
    aligned_height: int,
    aligned_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    pool_mode: int,
    aligned: bool,
) -> None:
    if pool_mode == 0 and input.requires_grad:
        _roi_align_max(input, rois, output, argmax_y, argmax_x, spatial_scale, sampling_ratio, aligned)
        return
    output.copy_(
        _ops.roi_align(
            input, rois, output_height=aligned_height, output_width=aligned_width, spatial_scale=spatial_scale,
            sampling_ratio=sampling_ratio, aligned=int(aligned), mode="avg" if pool_mode else "max",
        )
    )  # fmt: skip


def _roi_align_max(
    input: Tensor, rois: Tensor, output: Tensor, argmax_y: Tensor, argmax_x: Tensor, scale: float, ratio: int,
    aligned: bool,
) -> None:  # fmt: skip
    """Writes the maximum samples and their positions, -2 (outside) for none: the backward pass needs them, and the
    kernel does not return them."""
    argmax_y.fill_(-2)
    argmax_x.fill_(-2)
    height, width = output.shape[2:]
    for n, roi in enumerate(rois.double().tolist()):
        x1, y1, x2, y2 = (v * scale - (0.5 if aligned else 0.0) for v in roi[1:])
        bin_w, bin_h = ((max(v, 0.0 if aligned else 1.0)) for v in (x2 - x1, y2 - y1))
        bin_w, bin_h = bin_w / width, bin_h / height
        grid_h, grid_w = (ratio if ratio > 0 else math.ceil(size) for size in (bin_h, bin_w))
        if grid_h * grid_w == 0:
            continue
        y = y1 + (torch.arange(height * grid_h, device=input.device).double() + 0.5) * bin_h / grid_h
        x = x1 + (torch.arange(width * grid_w, device=input.device).double() + 0.5) * bin_w / grid_w
        y, x = torch.meshgrid(y, x, indexing="ij")
        y, x = (v.view(height, grid_h, width, grid_w).transpose(1, 2).flatten(2) for v in (y, x))
        largest, at = bilinear(input[int(roi[0])], y, x).max(-1)
        output[n] = largest
        argmax_y[n] = y.expand(len(at), -1, -1, -1).gather(-1, at[..., None])[..., 0]
        argmax_x[n] = x.expand(len(at), -1, -1, -1).gather(-1, at[..., None])[..., 0]


@provides("roi_align")
def roi_align_backward(
    grad_output: Tensor,
    rois: Tensor,
    argmax_y: Tensor,
    argmax_x: Tensor,
    grad_input: Tensor,
    aligned_height: int,
    aligned_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    pool_mode: int,
    aligned: bool,
) -> None:
    if pool_mode == 0:
        _, channels, height, width = grad_input.shape
        pixels, weights = corners(argmax_y, argmax_x, height, width)
        planes = rois[:, 0].long()[:, None] * channels + torch.arange(channels, device=rois.device)
        pixels = pixels + planes[:, :, None, None, None] * (height * width)
        grad_input.view(-1).index_add_(0, pixels.flatten(), (grad_output[..., None] * weights).flatten())
        return

    # An average is linear in the features, whose values do not matter.
    (grad,) = gradients_of(
        "roi_align", [grad_input, rois], grad_output, [0], output_height=aligned_height, output_width=aligned_width,
        spatial_scale=spatial_scale, sampling_ratio=sampling_ratio, aligned=int(aligned), mode="avg",
    )  # fmt: skip
    grad_input.copy_(grad)


@provides("roi_pool")
def roi_pool_forward(
    input: Tensor,
    rois: Tensor,
    output: Tensor,
    argmax: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> None:
    """Boxes include their last pixel. argmax is -1 for empty bins, whose output is 0."""
    result, positions = _ops.roi_pool(
        input, rois, output_height=pooled_height, output_width=pooled_width, spatial_scale=spatial_scale, rounded=0
    )
    output.copy_(result)
    argmax.copy_(positions)


@provides("roi_pool")
def roi_pool_backward(
    grad_output: Tensor,
    rois: Tensor,
    argmax: Tensor,
    grad_input: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> None:
    if grad_input.is_cpu:  # the kernel needs the positions only, not the features
        (grad,) = gradients_of(
            "roi_pool", [grad_input, rois], grad_output, [0], argmax.int(), output_height=pooled_height,
            output_width=pooled_width, spatial_scale=spatial_scale, rounded=0,
        )  # fmt: skip
        grad_input.copy_(grad)
        return
    _, channels, height, width = grad_input.shape
    planes = rois[:, 0].long()[:, None] * channels + torch.arange(channels, device=rois.device)
    pixels = argmax.long().clamp(min=0) + planes[:, :, None, None] * (height * width)
    grad_input.view(-1).index_add_(0, pixels.flatten(), torch.where(argmax >= 0, grad_output, 0).flatten())


@provides("prroi_pool")
def prroi_pool_forward(
    input: Tensor, rois: Tensor, output: Tensor, pooled_height: int, pooled_width: int, spatial_scale: float
) -> None:
    output.copy_(_prroi_pool(input, rois, pooled_height, pooled_width, spatial_scale))


def _prroi_pool(input: Tensor, rois: Tensor, height: int, width: int, scale: float) -> Tensor:
    return _ops.prroi_pool(input, rois, pooled_height=height, pooled_width=width, spatial_scale=scale)


@provides("prroi_pool")
def prroi_pool_backward(
    grad_output: Tensor, rois: Tensor, grad_input: Tensor, pooled_height: int, pooled_width: int, spatial_scale: float
) -> None:
    # An integral is linear in the features, whose values do not matter, nor does the output.
    sizes = {"pooled_height": pooled_height, "pooled_width": pooled_width, "spatial_scale": spatial_scale}
    (grad,) = gradients_of("prroi_pool", [grad_input, rois], grad_output, [0], torch.zeros_like(grad_output), **sizes)
    grad_input.copy_(grad)


@provides("prroi_pool")
def prroi_pool_coor_backward(
    output: Tensor,
    grad_output: Tensor,
    input: Tensor,
    rois: Tensor,
    grad_rois: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> None:
    sizes = {"pooled_height": pooled_height, "pooled_width": pooled_width, "spatial_scale": spatial_scale}
    (grad,) = gradients_of("prroi_pool", [input, rois], grad_output, [1], output, **sizes)
    grad_rois.copy_(grad)


@provides("deform_roi_pool")
def deform_roi_pool_forward(
    input: Tensor,
    rois: Tensor,
    offset: Tensor,
    output: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    gamma: float,
) -> None:
    output.copy_(
        _ops.deform_roi_pool(
            input, rois, offset if offset.numel() else None, pooled_height=pooled_height, pooled_width=pooled_width,
            spatial_scale=spatial_scale, sampling_ratio=sampling_ratio, gamma=gamma,
        )
    )  # fmt: skip


@provides("deform_roi_pool")
def deform_roi_pool_backward(
    grad_output: Tensor,
    input: Tensor,
    rois: Tensor,
    offset: Tensor,
    grad_input: Tensor,
    grad_offset: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    gamma: float,
) -> None:
    moved = offset.numel() > 0
    result = gradients_of(
        "deform_roi_pool", [input, rois, offset if moved else None], grad_output, [0, 2] if moved else [0],
        pooled_height=pooled_height, pooled_width=pooled_width, spatial_scale=spatial_scale,
        sampling_ratio=sampling_ratio, gamma=gamma,
    )  # fmt: skip
    for to, grad in zip((grad_input, grad_offset), result, strict=False):
        to.copy_(grad)


@provides("border_align")
def border_align_forward(input: Tensor, boxes: Tensor, output: Tensor, argmax_idx: Tensor, pool_size: int) -> None:
    output.copy_(_ops.border_align(input, boxes, pool_size=pool_size))
    if input.requires_grad:
        argmax_idx.copy_(_border_samples(input, boxes, pool_size).max(-1).indices)


def _border_positions(boxes: Tensor, pool_size: int) -> tuple[Tensor, Tensor]:
    """Returns y and x [N, K, 4, pool_size + 1] of the samples along the top, left, bottom and right side."""
    x1, y1, x2, y2 = boxes[..., None].unbind(-2)
    part = torch.arange(pool_size + 1, device=boxes.device).to(boxes) / pool_size
    across, down = (x2 - x1) * part, (y2 - y1) * part
    flat = torch.zeros_like(across)
    x = torch.stack([x1 + across, x1 + flat, x2 - across, x2 + flat], 2)
    y = torch.stack([y1 + flat, y1 + down, y2 + flat, y2 - down], 2)
    return y, x


def _border_samples(input: Tensor, boxes: Tensor, pool_size: int) -> Tensor:
    """Returns the samples [N, C, K, 4, pool_size + 1] of input [N, 4 * C, H, W]."""
    y, x = _border_positions(boxes, pool_size)
    channels = input.shape[1] // 4
    return torch.stack(
        [
            torch.stack(
                [bilinear(image[s * channels : (s + 1) * channels], y[n, :, s], x[n, :, s]) for s in range(4)], 2
            )
            for n, image in enumerate(input)
        ]
    )


@provides("border_align")
def border_align_backward(
    grad_output: Tensor, boxes: Tensor, argmax_idx: Tensor, grad_input: Tensor, pool_size: int
) -> None:
    def forward(features: Tensor) -> Tensor:
        return _border_samples(features, boxes, pool_size).gather(-1, argmax_idx.long()[..., None])[..., 0]

    grad_input.copy_(gradients(forward, [grad_input], grad_output)[0])
