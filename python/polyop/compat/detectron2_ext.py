# SPDX-License-Identifier: Apache-2.0
"""`detectron2._C` and torch.ops.detectron2: rotated boxes, deformable convolution, and COCOeval's functions.

Angles are in degrees, counter-clockwise.
"""

from __future__ import annotations

import torch
from torch import Tensor

from polyop import functional
from polyop.compat._cocoeval import (
    COCOevalAccumulate,
    COCOevalEvaluateImages,
    ImageEvaluation,
    InstanceAnnotation,
)
from polyop.compat.mmcv_ext._registry import gradients_of
from polyop.compat.mmcv_ext.deform import (
    deform_conv_backward_input,
    deform_conv_backward_parameters,
    deform_conv_forward,
    modulated_deform_conv_backward,
    modulated_deform_conv_forward,
)

__all__ = [
    "COCOevalAccumulate",
    "COCOevalEvaluateImages",
    "ImageEvaluation",
    "InstanceAnnotation",
    "box_iou_rotated",
    "deform_conv_backward_filter",
    "deform_conv_backward_input",
    "deform_conv_forward",
    "get_compiler_version",
    "get_cuda_version",
    "has_cuda",
    "modulated_deform_conv_backward",
    "modulated_deform_conv_forward",
    "nms_rotated",
    "roi_align_rotated_backward",
    "roi_align_rotated_forward",
]

deform_conv_backward_filter = deform_conv_backward_parameters

_DEGREE = torch.pi / 180


def get_compiler_version() -> str:
    """detectron2 prints it; polyop's own compiler is not known here."""
    return "polyop"


def get_cuda_version() -> str:
    return torch.version.cuda or "not available"


def has_cuda() -> bool:
    return torch.version.cuda is not None


def _clockwise(function: str, name: str, boxes: Tensor) -> Tensor:
    """Returns boxes (x, y, w, h, degrees counter-clockwise) in radians clockwise."""
    if boxes.dim() != 2 or boxes.size(1) != 5:
        raise ValueError(f"{function}: {name}: expected shape [N, 5], got {list(boxes.shape)}")
    boxes = boxes.float()
    return torch.cat([boxes[:, :4], boxes[:, 4:] * -_DEGREE], 1)


def box_iou_rotated(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """The IoU of boxes [M, 5] and [N, 5] -> [M, N]."""
    return functional.box_iou_rotated(
        _clockwise("box_iou_rotated", "boxes1", boxes1), _clockwise("box_iou_rotated", "boxes2", boxes2)
    )


def nms_rotated(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The indices of the kept boxes among [N, 5], by descending score."""
    return functional.nms_rotated(_clockwise("nms_rotated", "dets", dets), scores.float(), iou_threshold)


def _in_radians(function: str, rois: Tensor) -> Tensor:
    if rois.dim() != 2 or rois.size(1) != 6:
        raise ValueError(f"{function}: rois: expected shape [R, 6], got {list(rois.shape)}")
    return torch.cat([rois[:, :5], rois[:, 5:] * _DEGREE], 1)


def roi_align_rotated_forward(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int
) -> Tensor:
    """input [N, C, H, W], rois [R, 6] (image, x, y, w, h, degrees) -> [R, C, pooled_height, pooled_width]."""
    rois = _in_radians("roi_align_rotated_forward", rois)
    return functional.roi_align_rotated(
        input.contiguous(), rois.to(input), (pooled_height, pooled_width), spatial_scale, sampling_ratio
    )


def roi_align_rotated_backward(
    grad: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, batch_size: int,
    channels: int, height: int, width: int, sampling_ratio: int,
) -> Tensor:  # fmt: skip
    """The gradient of the input [batch_size, channels, height, width]."""
    rois = _in_radians("roi_align_rotated_backward", rois).to(grad)
    input = grad.new_zeros(batch_size, channels, height, width)  # linear in the input, whose values do not matter
    result = gradients_of(
        "roi_align_rotated", [input, rois], grad.contiguous(), [0], output_height=pooled_height,
        output_width=pooled_width, spatial_scale=spatial_scale, sampling_ratio=sampling_ratio, aligned=1, clockwise=0,
    )[0]  # fmt: skip
    assert result is not None
    return result


_SCHEMAS = {
    "nms_rotated(Tensor dets, Tensor scores, float iou_threshold) -> Tensor": nms_rotated,
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor": box_iou_rotated,
    "roi_align_rotated_forward(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
    "int sampling_ratio) -> Tensor": roi_align_rotated_forward,
    "roi_align_rotated_backward(Tensor grad, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
    "int batch_size, int channels, int height, int width, int sampling_ratio) -> Tensor": roi_align_rotated_backward,
}
_library = torch.library.Library("detectron2", "FRAGMENT")

for _schema, _function in _SCHEMAS.items():
    if not hasattr(torch.ops.detectron2, _function.__name__):  # detectron2's own library is loaded
        _library.define(_schema)
        _library.impl(_function.__name__, _function, "CompositeExplicitAutograd")
