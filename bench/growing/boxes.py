# SPDX-License-Identifier: Apache-2.0
"""Suppression of many boxes, and functions of boxes and rois."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from growing.call import MILLION, Call, Growing, call, integers, normal, scores, side_of, uniform


def spread(n: int) -> Tensor:
    """Returns boxes of 10 to 60 pixels in an image that grows with their number: most overlap one or two others."""
    centre, size = uniform(n, 2, high=32 * n**0.5), uniform(n, 2, low=10, high=60).flip(0)
    return torch.cat([centre - size / 2, centre + size / 2], 1)


def clustered(n: int) -> Tensor:
    """Returns a hundred boxes around each centre."""
    centre = uniform(math.ceil(n / 100), 2, high=100 * n**0.5).repeat_interleave(100, 0)[:n] + normal(n, 2) * 6
    size = uniform(n, 2, low=40, high=80)
    return torch.cat([centre - size / 2, centre + size / 2], 1)


def of_classes(n: int) -> Tensor:
    """Returns boxes of 80 classes, shifted so that those of two classes do not overlap."""
    return spread(n) + integers(80, n, 1) * (32 * n**0.5 + 60)


def rotated(n: int) -> Tensor:
    boxes = spread(n)
    size = (boxes[:, 2:] - boxes[:, :2]) * torch.tensor([1, 0.5])
    return torch.cat([(boxes[:, :2] + boxes[:, 2:]) / 2, size, uniform(n, 1, low=-3, high=3)], 1)


def boxes3d(n: int) -> Tensor:
    """Returns cars on a ground that grows with their number."""
    position = uniform(n, 3) * torch.tensor([4 * n**0.5, 4 * n**0.5, 2])
    size = uniform(n, 3, low=0.8, high=1.2) * torch.tensor([3.9, 1.6, 1.56])
    return torch.cat([position, size, uniform(n, 1, low=-3, high=3)], 1)


def of_class(operator: str, boxes: Tensor) -> Call:
    """One class of one image, from which all detections are requested."""
    n = len(boxes)
    return call(operator, boxes[None, :, None], scores(1, n, 1), keep_topk=n, iou_threshold=0.5, clip_boxes=0)


def efficient(n: int) -> Call:
    return call(
        "efficient_nms", spread(n)[None], scores(1, n, 1), None, score_threshold=0.0, iou_threshold=0.5,
        background_class=-1, max_output_boxes=n, score_activation=0, box_coding="corners",
    )  # fmt: skip


def onnx(n: int) -> Call:
    max_boxes, iou = torch.tensor(n), torch.tensor(0.5)
    return call("onnx_nms", spread(n)[None], scores(1, 1, n), max_boxes, iou, None)


def match(n: int) -> Call:
    return call("nms_match", spread(n)[None], scores(1, 1, n), torch.tensor(0.5), torch.tensor(0.0))


def decoded(n: int) -> Call:
    side, anchors = side_of(n), 6
    table = [3.9, 1.6, 1.56, 0.0] * anchors
    return call(
        "decode_bbox3d", normal(1, side, side, anchors * 3), normal(1, side, side, anchors * 7) * 0.1,
        normal(1, side, side, anchors * 2), point_cloud_range=[0.0, -40, -3, 80, 40, 1], anchors=table,
        anchor_bottom_height=[-1.78, -0.6, -0.6], dir_offset=0.785, dir_limit_offset=0.0, num_dir_bins=2,
        score_thresh=0.9,
    )  # fmt: skip


def rois(n: int, rotated_ones: bool = False) -> Tensor:
    """Returns rois of 4 to 40 pixels in an image of 256 x 256."""
    corner, size = uniform(n, 2, high=216), uniform(n, 2, low=4, high=40).flip(0)
    if rotated_ones:
        return torch.cat([torch.zeros(n, 1), corner + 20, size, uniform(n, 1, low=-3, high=3)], 1)
    return torch.cat([torch.zeros(n, 1), corner, corner + size], 1)


def curves(n: int) -> Tensor:
    """Returns rois whose upper and lower sides are curves."""
    batch, x1, y1, x2, y2 = rois(n).split(1, 1)
    along = torch.linspace(0, 1, 4)
    upper = torch.stack([x1 + along * (x2 - x1), y1 + 4 * along * (1 - along)], 2)
    lower = torch.stack([x2 - along * (x2 - x1), y2 + 4 * along * (1 - along)], 2)
    return torch.cat([batch, upper.flatten(1), lower.flatten(1)], 1)


def pyramid() -> list[Tensor]:
    return [normal(1, 16, 256 // 2**i, 256 // 2**i) for i in range(4)]


def pooled(operator: str, n: int) -> Call:
    image, output = normal(1, 16, 256, 256), {"output_height": 7, "output_width": 7}
    bins = {"pooled_height": 7, "pooled_width": 7}
    strides = {"featmap_strides": [1.0, 2.0, 4.0, 8.0], "finest_scale": 14, "sampling_ratio": 2}
    upright = rois(n)
    match operator:
        case "roi_align":
            return call(operator, image, upright, **output)
        case "roi_align_rotated":
            return call(operator, image, rois(n, rotated_ones=True), **output)
        case "onnx_roi_align" | "tensorrt_roi_align":
            return call(operator, image, upright[:, 1:], torch.zeros(n, dtype=torch.int64), **output)
        case "prroi_pool":
            return call(operator, image, upright, **bins)
        case "roi_pool":
            return call(operator, image, upright, **output)
        case "riroi_align_rotated":
            return call(operator, image, rois(n, rotated_ones=True), **bins)
        case "bezier_align":
            return call(operator, image, curves(n), **output)
        case "deform_roi_pool":
            return call(operator, image, upright, normal(n, 2, 7, 7), **bins)
        case "multi_level_roi_align":
            return call(operator, upright, pyramid(), **output, **strides)
        case "multi_level_rotated_roi_align":
            return call(operator, rois(n, rotated_ones=True), pyramid(), **output, **strides)
        case "openvino_roi_features":
            return call(operator, upright[:, 1:], pyramid(), pyramid_scales=[1, 2, 4, 8])
    raise ValueError(operator)


POOLS = (
    "roi_align", "roi_align_rotated", "onnx_roi_align", "tensorrt_roi_align", "roi_pool", "prroi_pool", "deform_roi_pool",
    "riroi_align_rotated", "bezier_align",
    "multi_level_roi_align", "multi_level_rotated_roi_align", "openvino_roi_features",
)  # fmt: skip

CASES = [
    Growing("nms", "spread boxes", 1000, MILLION, lambda n: call("nms", spread(n), scores(n))),
    Growing("nms", "clustered boxes", 1000, MILLION, lambda n: call("nms", clustered(n), scores(n))),
    Growing("nms", "boxes of 80 classes", 1000, MILLION, lambda n: call("nms", of_classes(n), scores(n))),
    Growing("nms_rotated", "spread boxes", 1000, MILLION, lambda n: call("nms_rotated", rotated(n), scores(n))),
    Growing("soft_nms", "spread boxes", 1000, MILLION, lambda n: call("soft_nms", spread(n), scores(n))),
    Growing("soft_nms", "clustered boxes", 1000, MILLION, lambda n: call("soft_nms", clustered(n), scores(n))),
    Growing("nms_match", "spread boxes", 1000, MILLION, match),
    Growing("batched_nms", "spread boxes", 1000, MILLION, lambda n: of_class("batched_nms", spread(n))),
    Growing("batched_rotated_nms", "spread boxes", 1000, MILLION,
            lambda n: of_class("batched_rotated_nms", rotated(n))),
    Growing("efficient_nms", "spread boxes", 1000, MILLION, efficient),
    Growing("onnx_nms", "spread boxes", 1000, MILLION, onnx),
    Growing("nms3d", "spread boxes", 1000, MILLION, lambda n: call("nms3d", boxes3d(n), scores(n))),
    Growing("boxes_iou3d", "boxes of both sets", 100, 20_000, lambda n: call("boxes_iou3d", boxes3d(n), boxes3d(n))),
    Growing("decode_bbox3d", "cells", 1000, MILLION, decoded),
    *(Growing(pool, "rois", 100, 100_000, lambda n, pool=pool: pooled(pool, n)) for pool in POOLS),
    Growing("border_align", "boxes", 1000, MILLION, lambda n: call(
        "border_align", normal(1, 16, 256, 256), rois(n)[None, :, 1:].contiguous(), pool_size=10)),
]  # fmt: skip
