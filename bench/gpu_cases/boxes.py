# SPDX-License-Identifier: Apache-2.0
"""Non-maximum suppression and overlaps of boxes."""

from __future__ import annotations

import gpu_rivals
import torch
from torch import Tensor

import polyop.functional as ops
from gpu_cases.cases import F32, Contest, case, mmcv_rival, set_close, torchvision_rival


def boxes_of(count: int, extent: float) -> Tensor:
    corners = torch.rand(count, 2) * extent
    return torch.cat([corners, corners + 16 + torch.rand(count, 2) * 100], 1)


def scores_of(count: int) -> Tensor:
    """Returns distinct scores, so that all implementations sort alike."""
    return (torch.randperm(count) + 1) / (count + 1)


def rotated_of(count: int, extent: float) -> Tensor:
    return torch.cat([torch.rand(count, 2) * extent, 10 + torch.rand(count, 2) * 60, torch.rand(count, 1) * 3], 1)


def suppressed(count: int) -> Contest:
    boxes, scores = boxes_of(count, 20.0 * count**0.5), scores_of(count)
    rivals = torchvision_rival(lambda: torch.ops.torchvision.nms(boxes, scores, 0.5))
    rivals.update(mmcv_rival(lambda: gpu_rivals.mmcv().nms(boxes, scores, 0.5, 0)))
    return Contest(lambda: ops.nms(boxes, scores, 0.5), [boxes, scores], rivals, same=set_close)


for _count in (1000, 10_000, 100_000):
    case("nms", f"{_count:,} boxes", F32, capturable=False)(lambda count=_count: suppressed(count))


@case("batched_nms", "4 images, 2,000 boxes, 20 classes, 100 kept", capturable=False)
def _() -> Contest:
    """Compares with a call for every image of torchvision's NMS of boxes that classes shift, and a sort."""
    boxes = torch.stack([boxes_of(2000, 800.0) for _ in range(4)])
    scores = torch.rand(4, 2000, 20)

    def ours() -> Tensor:
        return torch.ops.polyop.batched_nms(
            boxes[:, :, None].contiguous(), scores, num_classes=20, topk=1000, keep_topk=100, score_threshold=0.6,
            iou_threshold=0.5, is_normalized=0, clip_boxes=0,
        )[0][..., 4].sort(1, descending=True)[0]  # fmt: skip

    def by_image() -> Tensor:
        kept = []
        for of_image, of_boxes in zip(scores, boxes, strict=True):
            best, at = of_image.masked_fill(of_image <= 0.6, -1).topk(1000, 0)
            classes = torch.arange(20)[None].expand_as(at).flatten()
            candidates, values = of_boxes[at.flatten()], best.flatten()
            valid = values > 0
            candidates, values, classes = candidates[valid], values[valid], classes[valid]
            keep = torch.ops.torchvision.nms(candidates + classes[:, None] * 4000.0, values, 0.5)[:100]
            kept.append(values[keep])
        return torch.stack(kept)

    return Contest(ours, [boxes, scores], torchvision_rival(by_image))


@case("efficient_nms", "4 images, 8,400 boxes, 80 classes, 100 kept", capturable=False)
def _() -> Contest:
    boxes, scores = torch.stack([boxes_of(8400, 1200.0) for _ in range(4)]), torch.rand(4, 8400, 80) ** 4
    attributes = {"score_threshold": 0.3, "iou_threshold": 0.5, "background_class": -1, "max_output_boxes": 100}
    return Contest(
        lambda: torch.ops.polyop.efficient_nms(
            boxes, scores, None, **attributes, score_activation=0, box_coding="corners"
        ),
        [boxes, scores],
    )


@case("soft_nms", "1,000 boxes", capturable=False)
def _() -> Contest:
    boxes, scores = boxes_of(1000, 600.0), scores_of(1000)
    return Contest(lambda: torch.ops.polyop.soft_nms(boxes, scores, iou_threshold=0.3), [boxes, scores])


@case("nms_rotated", "2,000 boxes", capturable=False)
def _() -> Contest:
    boxes, scores = rotated_of(2000, 900.0), scores_of(2000)
    none = torch.empty(0, dtype=torch.int32)

    def mmcv() -> Tensor:
        order = scores.sort(0, descending=True)[1]
        return gpu_rivals.mmcv().nms_rotated(boxes, scores, order, boxes.index_select(0, order), none, 0.3, 0)

    return Contest(lambda: ops.nms_rotated(boxes, scores, 0.3), [boxes, scores], mmcv_rival(mmcv), same=set_close)


@case("box_iou_rotated", "2,000 x 2,000 boxes")
def _() -> Contest:
    a, b = rotated_of(2000, 400.0), rotated_of(2000, 400.0)

    def mmcv() -> Tensor:
        to = a.new_zeros(2000 * 2000)
        gpu_rivals.mmcv().box_iou_rotated(a, b, to, 0, False)
        return to.view(2000, 2000)

    return Contest(lambda: torch.ops.polyop.box_iou_rotated(a, b), [a, b], mmcv_rival(mmcv))
