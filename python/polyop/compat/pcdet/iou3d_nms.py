# SPDX-License-Identifier: Apache-2.0
"""`pcdet.ops.iou3d_nms.iou3d_nms_cuda`: overlaps of rotated boxes in bird's-eye view, and suppression.

Functions run on the device of their tensors, whatever their names say.
"""

from __future__ import annotations

import torch
from torch import Tensor

from polyop import functional

__all__ = [
    "boxes_aligned_iou_bev_cpu", "boxes_aligned_overlap_bev_gpu", "boxes_iou_bev_cpu", "boxes_iou_bev_gpu",
    "boxes_overlap_bev_gpu", "nms_gpu", "nms_normal_gpu", "paired_boxes_overlap_bev_gpu",
]  # fmt: skip

_ops = torch.ops.polyop


def _check(function: str, **boxes: Tensor) -> None:
    for name, tensor in boxes.items():
        if tensor.dim() != 2 or tensor.shape[1] != 7:
            raise ValueError(f"{function}: {name}: expected shape [N, 7], got {list(tensor.shape)}")


def _write(function: str, name: str, to: Tensor, values: Tensor) -> int:
    if to.numel() != values.numel():
        raise ValueError(f"{function}: {name}: expected {values.numel()} elements, got shape {list(to.shape)}")
    to.view(-1).copy_(values.flatten())
    return 1


def _aligned(function: str, boxes_a: Tensor, boxes_b: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the IoU and the intersection of each pair."""
    _check(function, boxes_a=boxes_a, boxes_b=boxes_b)
    if len(boxes_a) != len(boxes_b):
        raise ValueError(f"{function}: boxes_b: expected {len(boxes_a)} boxes, got {len(boxes_b)}")
    columns = [0, 1, 3, 4, 6]
    iou = functional.box_iou_rotated(boxes_a[:, columns].contiguous(), boxes_b[:, columns].contiguous(), "iou", True)
    total = boxes_a[:, 3] * boxes_a[:, 4] + boxes_b[:, 3] * boxes_b[:, 4]
    return iou, iou * total / (1 + iou)


def boxes_aligned_overlap_bev_gpu(boxes_a: Tensor, boxes_b: Tensor, ans_overlap: Tensor) -> int:
    """The areas [N, 1] that pairs of boxes share."""
    name = "boxes_aligned_overlap_bev_gpu"
    return _write(name, "ans_overlap", ans_overlap, _aligned(name, boxes_a, boxes_b)[1])


def paired_boxes_overlap_bev_gpu(boxes_a: Tensor, boxes_b: Tensor, ans_overlap: Tensor) -> int:
    """The areas [N, 1] that pairs of boxes share."""
    name = "paired_boxes_overlap_bev_gpu"
    return _write(name, "ans_overlap", ans_overlap, _aligned(name, boxes_a, boxes_b)[1])


def boxes_aligned_iou_bev_cpu(boxes_a: Tensor, boxes_b: Tensor, ans_iou: Tensor) -> int:
    """The IoU [N, 1] of pairs of boxes."""
    name = "boxes_aligned_iou_bev_cpu"
    return _write(name, "ans_iou", ans_iou, _aligned(name, boxes_a, boxes_b)[0])


def boxes_overlap_bev_gpu(boxes_a: Tensor, boxes_b: Tensor, ans_overlap: Tensor) -> int:
    """The areas [N, M] that the boxes share."""
    _check("boxes_overlap_bev_gpu", boxes_a=boxes_a, boxes_b=boxes_b)
    return _write(
        "boxes_overlap_bev_gpu", "ans_overlap", ans_overlap, _ops.boxes_iou3d(boxes_a, boxes_b, mode="overlap_bev")
    )


def boxes_iou_bev_gpu(boxes_a: Tensor, boxes_b: Tensor, ans_iou: Tensor) -> int:
    """The IoU [N, M] in bird's-eye view."""
    _check("boxes_iou_bev_gpu", boxes_a=boxes_a, boxes_b=boxes_b)
    return _write("boxes_iou_bev_gpu", "ans_iou", ans_iou, _ops.boxes_iou3d(boxes_a, boxes_b, mode="iou_bev"))


boxes_iou_bev_cpu = boxes_iou_bev_gpu


def _suppress(function: str, boxes: Tensor, keep: Tensor, threshold: float, normal: int) -> int:
    _check(function, boxes=boxes)
    if keep.dtype != torch.int64 or len(keep) < len(boxes):
        raise ValueError(f"{function}: keep: expected i64 [{len(boxes)}], got {keep.dtype} {list(keep.shape)}")
    descending = torch.arange(len(boxes), 0, -1, device=boxes.device).to(boxes)
    kept = _ops.nms3d(boxes, descending, iou_threshold=threshold, normal=normal)
    keep[: len(kept)] = kept.to(keep.device)
    return len(kept)


def nms_gpu(boxes: Tensor, keep: Tensor, nms_overlap_thresh: float) -> int:
    """Writes the indices of the kept boxes, which are sorted by descending score; returns their number."""
    return _suppress("nms_gpu", boxes, keep, nms_overlap_thresh, 0)


def nms_normal_gpu(boxes: Tensor, keep: Tensor, nms_overlap_thresh: float) -> int:
    """`nms_gpu` that ignores headings."""
    return _suppress("nms_normal_gpu", boxes, keep, nms_overlap_thresh, 1)
