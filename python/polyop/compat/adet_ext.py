# SPDX-License-Identifier: Apache-2.0
"""`adet._C`, the compiled part of AdelaiDet: BezierAlign, deformable RoIAlign and NMS by labels, also on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop import functional
from polyop.compat.mmcv_ext._registry import gradients_of

__all__ = [
    "bezier_align_backward",
    "bezier_align_forward",
    "def_roi_align_backward",
    "def_roi_align_forward",
    "ml_nms",
]


def bezier_align_forward(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int,
    aligned: bool,
) -> Tensor:  # fmt: skip
    """input [N, C, H, W], rois [R, 17] (image, 8 points of two curves) -> [R, C, pooled_height, pooled_width]."""
    size = (pooled_height, pooled_width)
    return functional.bezier_align(input.contiguous(), rois.to(input), size, spatial_scale, sampling_ratio, aligned)


def bezier_align_backward(
    grad: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, batch_size: int,
    channels: int, height: int, width: int, sampling_ratio: int, aligned: bool,
) -> Tensor | None:  # fmt: skip
    """The gradient of the input [batch_size, channels, height, width]."""
    input = grad.new_zeros(batch_size, channels, height, width)  # linear in the input, whose values do not matter
    return gradients_of(
        "bezier_align", [input, rois.to(grad)], grad.contiguous(), [0], output_height=pooled_height,
        output_width=pooled_width, spatial_scale=spatial_scale, sampling_ratio=sampling_ratio, aligned=int(aligned),
    )[0]  # fmt: skip


def _check_aligned(function: str, aligned: bool) -> None:
    if not aligned:
        raise ValueError(f"{function}: aligned: expected True")


def def_roi_align_forward(
    input: Tensor, rois: Tensor, offsets: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    sampling_ratio: int, trans_std: float, aligned: bool,
) -> Tensor:  # fmt: skip
    """input [N, C, H, W], rois [R, 5], offsets [R, 2, pooled_height, pooled_width], in units of trans_std * the roi's
    size -> [R, C, pooled_height, pooled_width]."""
    _check_aligned("def_roi_align_forward", aligned)
    size = (pooled_height, pooled_width)
    return functional.deform_roi_pool(
        input.contiguous(),
        rois.to(input),
        offsets.to(input).contiguous(),
        size,
        spatial_scale,
        sampling_ratio,
        trans_std,
    )


def def_roi_align_backward(
    input: Tensor, grad: Tensor, rois: Tensor, offsets: Tensor, grad_offsets: Tensor, spatial_scale: float,
    pooled_height: int, pooled_width: int, batch_size: int, channels: int, height: int, width: int,
    sampling_ratio: int, trans_std: float, aligned: bool,
) -> Tensor | None:  # fmt: skip
    """Returns the gradient of the input, and writes that of the offsets."""
    del batch_size, channels, height, width
    _check_aligned("def_roi_align_backward", aligned)
    of_input, of_offsets = gradients_of(
        "deform_roi_pool", [input.contiguous(), rois.to(input), offsets.to(input).contiguous()], grad.contiguous(),
        [0, 2], pooled_height=pooled_height, pooled_width=pooled_width, spatial_scale=spatial_scale,
        sampling_ratio=sampling_ratio, gamma=trans_std,
    )  # fmt: skip
    assert of_offsets is not None
    grad_offsets.copy_(of_offsets)
    return of_input


def ml_nms(dets: Tensor, scores: Tensor, labels: Tensor, threshold: float) -> Tensor:
    """The indices of the boxes [N, 4] that NMS within each label keeps, by descending score."""
    kept = [torch.empty(0, dtype=torch.long, device=dets.device)]
    for label in labels.unique():
        members = (labels == label).nonzero()[:, 0]
        kept.append(members[functional.nms(dets[members].float(), scores[members].float(), threshold, offset=1)])
    found = torch.cat(kept)
    return found[scores[found].argsort(descending=True, stable=True)]
