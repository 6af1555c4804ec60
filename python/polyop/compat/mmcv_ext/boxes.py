# SPDX-License-Identifier: Apache-2.0
"""Overlaps of boxes and suppression."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop import functional
from polyop.compat.mmcv_ext._registry import provides

_ops = torch.ops.polyop


# ---- suppression -----------------------------------------------------------------------------------


@provides("nms")
def nms(boxes: Tensor, scores: Tensor, iou_threshold: float, offset: int) -> Tensor:
    return _ops.nms(boxes.contiguous(), scores.contiguous(), iou_threshold=iou_threshold, offset=offset)


@provides("soft_nms")
def softnms(
    boxes: Tensor,
    scores: Tensor,
    dets: Tensor,
    iou_threshold: float,
    sigma: float,
    min_score: float,
    method: int,
    offset: int,
) -> Tensor:
    result, kept = _ops.soft_nms(
        boxes.contiguous(), scores.contiguous(), iou_threshold=iou_threshold, sigma=sigma, min_score=min_score,
        method=("naive", "linear", "gaussian")[method], offset=offset,
    )  # fmt: skip
    dets[: len(result)] = result
    return kept


@provides("nms_match")
def nms_match(dets: Tensor, iou_threshold: float) -> list[list[int]]:
    return [group.tolist() for group in functional.nms_match(dets, iou_threshold)]


_OFFSETS = 72  # of a lane, as CLRNet has it: x at this number of rows of the image
_BEFORE_OFFSETS = 5  # two class scores, start as a fraction of the rows, x of the start, length in rows


@provides()
def line_nms_forward(boxes: Tensor, scores: Tensor, overlap: float, top_k: int) -> list[Tensor]:
    """Suppresses lanes [n, 77] whose mean distance to a kept one, in the rows that both cross, is less than `overlap`.

    Returns the kept indices [n], the rest 0; their number; and for each lane one more than the position of the last
    kept lane that is as close, 0 for none. From onedl-mmcv 2.3 on; https://arxiv.org/abs/2203.10350.
    """
    if boxes.dim() != 2 or boxes.shape[1] != _BEFORE_OFFSETS + _OFFSETS:
        raise ValueError(f"line_nms: boxes: expected shape [n, {_BEFORE_OFFSETS + _OFFSETS}], got {list(boxes.shape)}")
    order = scores.argsort(dim=0, descending=True, stable=True)
    lanes = boxes[order]
    x, row = lanes[:, _BEFORE_OFFSETS:], torch.arange(_OFFSETS)
    first = (lanes[:, 2] * (_OFFSETS - 1) + 0.5).long()
    last = first + lanes[:, 4].long() - 1
    keep, parent = torch.zeros_like(order), torch.zeros_like(order)
    open_lanes, count = torch.ones(len(order), dtype=torch.bool), 0
    for i in range(len(order)):
        if not open_lanes[i] or count == top_k:
            continue
        low, high = torch.maximum(first, first[i]), torch.minimum(last, last[i]).clamp(max=_OFFSETS - 1)
        shared = (row >= low[:, None]) & (row <= high[:, None])
        distance = torch.where(shared, (x - x[i]).abs(), 0).sum(1)
        close = (high >= low) & (low >= 0) & (distance < overlap * (high - low + 1))
        close[: i + 1] = False
        keep[count], parent[order[close]], parent[order[i]] = order[i], count + 1, count + 1
        open_lanes &= ~close
        count += 1
    return [keep, torch.tensor(count), parent]


@provides("nms_rotated")
def nms_rotated(
    dets: Tensor,
    scores: Tensor,
    order: Tensor,
    dets_sorted: Tensor,
    labels: Tensor,
    iou_threshold: float,
    multi_label: bool,
) -> Tensor:
    """Ignores labels, the sixth column of a box, like MMCV's kernels."""
    del order, dets_sorted, labels, multi_label
    return _ops.nms_rotated(dets[:, :5].float().contiguous(), scores.float().contiguous(), iou_threshold=iou_threshold)


@provides("nms_quadri")
def nms_quadri(
    dets: Tensor, scores: Tensor, order: Tensor, dets_sorted: Tensor, iou_threshold: float, multi_label: bool
) -> Tensor:
    """Ignores labels, the ninth column of a box, like MMCV's kernels."""
    del order, dets_sorted, multi_label
    return _ops.nms_quadri(dets[:, :8].float().contiguous(), scores.float().contiguous(), iou_threshold=iou_threshold)


def _suppress3d(boxes: Tensor, keep: Tensor, num_out: Tensor, threshold: float, normal: int) -> None:
    descending = torch.arange(len(boxes), 0, -1, device=boxes.device).to(boxes)  # the caller has sorted the boxes
    kept = _ops.nms3d(boxes, descending, iou_threshold=threshold, normal=normal)
    keep[: len(kept)] = kept.to(keep.device)
    num_out.fill_(len(kept))


@provides("nms3d")
def iou3d_nms3d_forward(boxes: Tensor, keep: Tensor, num_out: Tensor, nms_overlap_thresh: float) -> None:
    _suppress3d(boxes, keep, num_out, nms_overlap_thresh, 0)


@provides("nms3d")
def iou3d_nms3d_normal_forward(boxes: Tensor, keep: Tensor, num_out: Tensor, nms_overlap_thresh: float) -> None:
    _suppress3d(boxes, keep, num_out, nms_overlap_thresh, 1)


# ---- overlaps --------------------------------------------------------------------------------------


@provides("boxes_iou3d")
def iou3d_boxes_overlap_bev_forward(boxes_a: Tensor, boxes_b: Tensor, ans_iou: Tensor) -> None:
    ans_iou.copy_(_ops.boxes_iou3d(boxes_a, boxes_b, mode="overlap_bev"))


@provides()
def bbox_overlaps(bboxes1: Tensor, bboxes2: Tensor, ious: Tensor, mode: int, aligned: bool, offset: int) -> None:
    a, b = (bboxes1, bboxes2) if aligned else (bboxes1[:, None], bboxes2[None])
    size = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2]) + offset).clamp(min=0)
    shared = size[..., 0] * size[..., 1]
    area_a, area_b = ((box[..., 2] - box[..., 0] + offset) * (box[..., 3] - box[..., 1] + offset) for box in (a, b))
    ious.copy_(
        shared / (area_a + area_b - shared if mode == 0 else area_a).clamp(min=offset or torch.finfo(a.dtype).tiny)
    )


@provides("box_iou_rotated")
def box_iou_rotated(boxes1: Tensor, boxes2: Tensor, ious: Tensor, mode_flag: int, aligned: bool) -> None:
    result = functional.box_iou_rotated(boxes1, boxes2, "iof" if mode_flag == 1 else "iou", bool(aligned))
    ious.view(-1).copy_(result.flatten())


@provides("box_iou_quadri")
def box_iou_quadri(boxes1: Tensor, boxes2: Tensor, ious: Tensor, mode_flag: int, aligned: bool) -> None:
    result = functional.box_iou_quadri(boxes1, boxes2, "iof" if mode_flag == 1 else "iou", bool(aligned))
    ious.view(-1).copy_(result.flatten())


# ---- sets of nine points (RepPoints) ---------------------------------------------------------------


@provides("convex_iou")
def convex_iou(pointsets: Tensor, polygons: Tensor, ious: Tensor) -> None:
    """IoU of the convex hulls of pointsets [N, 18] and quadrilaterals [K, 8]."""
    ious.copy_(functional.convex_iou(pointsets, polygons))


@provides("convex_giou")
def convex_giou(pointsets: Tensor, polygons: Tensor, output: Tensor) -> None:
    """output [N, 19]: the gradient of each GIoU with respect to its 18 coordinates, and the GIoU."""
    output.copy_(_ops.convex_giou(pointsets, polygons))


@provides("min_area_polygons")
def min_area_polygons(pointsets: Tensor, polygons: Tensor) -> None:
    """The corners [N, 8] of the smallest rectangle around each set of nine points [N, 18]."""
    polygons.copy_(_ops.min_area_polygons(pointsets))


@provides("points_in_polygons")
def points_in_polygons_forward(points: Tensor, polygons: Tensor, output: Tensor) -> None:
    """1 if a point [N, 2] is inside a quadrilateral [M, 8], 0 outside and on its border."""
    output.copy_(_ops.points_in_polygons(points, polygons))


@provides("diff_iou_rotated_sort_vertices")
def diff_iou_rotated_sort_vertices_forward(vertices: Tensor, mask: Tensor, num_valid: Tensor) -> Tensor:
    """The indices of the valid vertices [B, N, 24, 2] by ascending angle around the origin, followed by the first one
    again,
    padded to 9 with an invalid vertex: [B, N, 9]. Fewer than three valid vertices count as none."""
    return _ops.diff_iou_rotated_sort_vertices(vertices, mask, num_valid)
