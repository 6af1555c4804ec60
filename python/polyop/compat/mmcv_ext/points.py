# SPDX-License-Identifier: Apache-2.0
"""Point clouds."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop import functional
from polyop.compat.mmcv_ext._registry import gradients_of, provides

_ops = torch.ops.polyop


# ---- neighbours ------------------------------------------------------------------------------------


@provides("ball_query")
def ball_query_forward(
    new_xyz_tensor: Tensor,
    xyz_tensor: Tensor,
    idx_tensor: Tensor,
    b: int,
    n: int,
    m: int,
    min_radius: float,
    max_radius: float,
    nsample: int,
) -> None:
    del b, n, m
    idx_tensor.copy_(functional.ball_query(min_radius, max_radius, nsample, xyz_tensor, new_xyz_tensor))


@provides("stacked_ball_query")
def stack_ball_query_forward(
    new_xyz_tensor: Tensor,
    new_xyz_batch_cnt: Tensor,
    xyz_tensor: Tensor,
    xyz_batch_cnt: Tensor,
    idx_tensor: Tensor,
    max_radius: float,
    nsample: int,
) -> None:
    counts = (xyz_batch_cnt, new_xyz_batch_cnt)
    idx_tensor.copy_(functional.ball_query(0, max_radius, nsample, xyz_tensor, new_xyz_tensor, *counts))


@provides("knn")
def knn_forward(
    xyz_tensor: Tensor,
    new_xyz_tensor: Tensor,
    idx_tensor: Tensor,
    dist2_tensor: Tensor,
    b: int,
    n: int,
    m: int,
    nsample: int,
) -> None:
    del b, n, m
    found = functional.knn(nsample, xyz_tensor, new_xyz_tensor).mT
    idx_tensor.copy_(found)
    near = xyz_tensor[torch.arange(len(found), device=found.device)[:, None, None], found.long()]
    dist2_tensor.copy_(((near - new_xyz_tensor[:, :, None]) ** 2).sum(-1))


@provides("three_nn")
def three_nn_forward(
    unknown_tensor: Tensor, known_tensor: Tensor, dist2_tensor: Tensor, idx_tensor: Tensor, b: int, n: int, m: int
) -> None:
    del b, n, m
    distance, nearest = functional.three_nn(unknown_tensor, known_tensor)
    dist2_tensor.copy_(distance * distance)
    idx_tensor.copy_(nearest)


@provides("furthest_point_sampling")
def furthest_point_sampling_forward(
    points_tensor: Tensor, temp_tensor: Tensor, idx_tensor: Tensor, b: int, n: int, m: int
) -> None:
    del temp_tensor, b, n
    idx_tensor.copy_(functional.furthest_point_sample(points_tensor, m))


@provides("furthest_point_sampling_with_dist")
def furthest_point_sampling_with_dist_forward(
    points_tensor: Tensor, temp_tensor: Tensor, idx_tensor: Tensor, b: int, n: int, m: int
) -> None:
    del temp_tensor, b, n
    idx_tensor.copy_(functional.furthest_point_sample_with_dist(points_tensor, m))


# ---- features of neighbours ------------------------------------------------------------------------


def _add_gradient(operator: str, grad_points: Tensor, grad_out: Tensor, *rest: Tensor) -> None:
    """Adds the gradient of the points to `grad_points`. It does not depend on the points' values."""
    (grad,) = gradients_of(operator, [grad_points, *rest], grad_out, [0])
    grad_points.add_(grad)


@provides("gather_points")
def gather_points_forward(
    points_tensor: Tensor, idx_tensor: Tensor, out_tensor: Tensor, b: int, c: int, n: int, npoints: int
) -> None:
    del b, c, n, npoints
    out_tensor.copy_(functional.gather_points(points_tensor, idx_tensor))


@provides("gather_points")
def gather_points_backward(
    grad_out_tensor: Tensor, idx_tensor: Tensor, grad_points_tensor: Tensor, b: int, c: int, n: int, npoints: int
) -> None:
    del b, c, n, npoints
    _add_gradient("gather_points", grad_points_tensor, grad_out_tensor, idx_tensor)


@provides("group_points")
def group_points_forward(
    points_tensor: Tensor, idx_tensor: Tensor, out_tensor: Tensor, b: int, c: int, n: int, npoints: int, nsample: int
) -> None:
    del b, c, n, npoints, nsample
    out_tensor.copy_(functional.grouping_operation(points_tensor, idx_tensor))


@provides("group_points")
def group_points_backward(
    grad_out_tensor: Tensor,
    idx_tensor: Tensor,
    grad_points_tensor: Tensor,
    b: int,
    c: int,
    n: int,
    npoints: int,
    nsample: int,
) -> None:
    del b, c, n, npoints, nsample
    _add_gradient("group_points", grad_points_tensor, grad_out_tensor, idx_tensor)


def _stacked_rows(idx: Tensor, idx_counts: Tensor, counts: Tensor, rows: int) -> Tensor:
    """Returns the rows at idx [M, K] of concatenated clouds, each relative to its own cloud; the number of rows for
    invalid indices."""
    count = counts.long()
    first, own = (t.repeat_interleave(idx_counts.long())[:, None] for t in (count.cumsum(0) - count, count))
    return torch.where((idx >= 0) & (idx < own), idx.long() + first, rows)


def _with_a_row_more(features: Tensor) -> Tensor:
    """Appends a row of zeros, for invalid indices."""
    return torch.cat([features, features.new_zeros(1, features.shape[1])])


@provides()
def stack_group_points_forward(
    features_tensor: Tensor,
    features_batch_cnt_tensor: Tensor,
    idx_tensor: Tensor,
    idx_batch_cnt_tensor: Tensor,
    out_tensor: Tensor,
    b: int,
    c: int,
    m: int,
    nsample: int,
) -> None:
    del b, c, m, nsample
    rows = _stacked_rows(idx_tensor, idx_batch_cnt_tensor, features_batch_cnt_tensor, len(features_tensor))
    out_tensor.copy_(_with_a_row_more(features_tensor)[rows].mT)


@provides()
def stack_group_points_backward(
    grad_out_tensor: Tensor,
    idx_tensor: Tensor,
    idx_batch_cnt_tensor: Tensor,
    features_batch_cnt_tensor: Tensor,
    grad_features_tensor: Tensor,
    b: int,
    c: int,
    m: int,
    n: int,
    nsample: int,
) -> None:
    del b, c, m, n, nsample
    rows = _stacked_rows(idx_tensor, idx_batch_cnt_tensor, features_batch_cnt_tensor, len(grad_features_tensor))
    result = _with_a_row_more(grad_features_tensor).index_add(0, rows.flatten(), grad_out_tensor.mT.flatten(0, 1))
    grad_features_tensor.copy_(result[:-1])


@provides("three_interpolate")
def three_interpolate_forward(
    points_tensor: Tensor,
    idx_tensor: Tensor,
    weight_tensor: Tensor,
    out_tensor: Tensor,
    b: int,
    c: int,
    m: int,
    n: int,
) -> None:
    del b, c, m, n
    out_tensor.copy_(functional.three_interpolate(points_tensor, idx_tensor, weight_tensor))


@provides("three_interpolate")
def three_interpolate_backward(
    grad_out_tensor: Tensor,
    idx_tensor: Tensor,
    weight_tensor: Tensor,
    grad_points_tensor: Tensor,
    b: int,
    c: int,
    n: int,
    m: int,
) -> None:
    del b, c, n, m
    _add_gradient("three_interpolate", grad_points_tensor, grad_out_tensor, idx_tensor, weight_tensor)


@provides("assign_score_withk")
def assign_score_withk_forward(
    points: Tensor,
    centers: Tensor,
    scores: Tensor,
    knn_idx: Tensor,
    output: Tensor,
    B: int,
    N0: int,
    N1: int,
    M: int,
    K: int,
    O: int,  # noqa: E741
    aggregate: int,
) -> None:
    """Ignores `aggregate`, like MMCV's kernels."""
    del B, N0, N1, M, K, O, aggregate
    output.copy_(_ops.assign_score_withk(scores, points, centers, knn_idx))


@provides("assign_score_withk")
def assign_score_withk_backward(
    grad_out: Tensor,
    points: Tensor,
    centers: Tensor,
    scores: Tensor,
    knn_idx: Tensor,
    grad_points: Tensor,
    grad_centers: Tensor,
    grad_scores: Tensor,
    B: int,
    N0: int,
    N1: int,
    M: int,
    K: int,
    O: int,  # noqa: E741
    aggregate: int,
) -> None:
    del B, N0, N1, M, K, O, aggregate
    result = gradients_of("assign_score_withk", [scores, points, centers, knn_idx], grad_out, [0, 1, 2])
    for to, grad in zip((grad_scores, grad_points, grad_centers), result, strict=True):
        to.copy_(grad)


# ---- points in boxes -------------------------------------------------------------------------------


@provides("points_in_boxes_part")
def points_in_boxes_part_forward(boxes_tensor: Tensor, pts_tensor: Tensor, box_idx_of_points_tensor: Tensor) -> None:
    box_idx_of_points_tensor.copy_(functional.points_in_boxes_part(pts_tensor, boxes_tensor))


@provides("points_in_boxes_all")
def points_in_boxes_all_forward(boxes_tensor: Tensor, pts_tensor: Tensor, box_idx_of_points_tensor: Tensor) -> None:
    box_idx_of_points_tensor.copy_(functional.points_in_boxes_all(pts_tensor, boxes_tensor))


@provides("points_in_boxes_all")
def points_in_boxes_cpu_forward(boxes_tensor: Tensor, pts_tensor: Tensor, pts_indices_tensor: Tensor) -> None:
    """Returns a row per box, for one cloud."""
    pts_indices_tensor.copy_(functional.points_in_boxes_all(pts_tensor[None], boxes_tensor[None])[0].mT)


@provides("roipoint_pool3d")
def roipoint_pool3d_forward(
    xyz: Tensor, boxes3d: Tensor, pts_feature: Tensor, pooled_features: Tensor, pooled_empty_flag: Tensor
) -> None:
    features, empty = functional.roipoint_pool3d(xyz, pts_feature, boxes3d, pooled_features.shape[2])
    pooled_features.copy_(features)
    pooled_empty_flag.copy_(empty)


@provides("roiaware_pool3d", "points_in_boxes_all")
def roiaware_pool3d_forward(
    rois: Tensor,
    pts: Tensor,
    pts_feature: Tensor,
    argmax: Tensor,
    pts_idx_of_voxels: Tensor,
    pooled_features: Tensor,
    pool_method: int,
) -> None:
    """The first value of a cell in pts_idx_of_voxels is its number of points; the points' indices follow."""
    sizes, max_points = pooled_features.shape[1:4], pts_idx_of_voxels.shape[-1]
    mode = ("max", "avg")[pool_method]
    pooled_features.copy_(functional.roiaware_pool3d(rois, pts, pts_feature, sizes, max_points, mode))
    if pts_feature.requires_grad:
        find_pooled_points(rois, pts, pts_feature, argmax, pts_idx_of_voxels, pooled_features, mode)


def find_pooled_points(
    rois: Tensor,
    pts: Tensor,
    pts_feature: Tensor,
    argmax: Tensor,
    pts_idx_of_voxels: Tensor,
    pooled_features: Tensor,
    mode: str,
) -> None:
    """Fills what the gradient needs: the points of each cell, and those with the maxima."""
    sizes, max_points = pooled_features.shape[1:4], pts_idx_of_voxels.shape[-1]
    pts_idx_of_voxels.zero_()
    argmax.fill_(-1)
    roi, point = functional.points_in_boxes_all(pts[None], rois[None])[0].mT.nonzero().unbind(1)
    if len(roi) == 0:
        return
    cell = _cells(rois[roi].double(), pts[point].double(), sizes)
    number = ((roi * sizes[0] + cell[:, 0]) * sizes[1] + cell[:, 1]) * sizes[2] + cell[:, 2]
    number, order = number.sort(stable=True)
    point = point[order]
    first = torch.searchsorted(number, number)
    index = torch.arange(len(number), device=number.device) - first
    taken = index < max_points - 1
    number, point, index = number[taken], point[taken], index[taken]
    table = pts_idx_of_voxels.view(-1, max_points)
    table[number, index + 1] = point.to(table.dtype)
    table[:, 0] = torch.bincount(number, minlength=len(table)).to(table.dtype)
    if mode == "max":
        largest = pooled_features.flatten(0, 3)
        found = torch.where(pts_feature[point] == largest[number], point[:, None], len(pts))
        best = torch.full_like(largest, len(pts), dtype=torch.int64)
        best.scatter_reduce_(0, number[:, None].expand_as(found), found, "amin")
        argmax.copy_(torch.where(best < len(pts), best, -1).view_as(argmax))


def _cells(boxes: Tensor, points: Tensor, sizes: torch.Size) -> Tensor:
    """Returns the cell (x, y, z) of each point in its box [P, 7], where z is the bottom."""
    moved = points - boxes[:, :3]
    cos, sin = (-boxes[:, 6]).cos(), (-boxes[:, 6]).sin()
    local = torch.stack([moved[:, 0] * cos - moved[:, 1] * sin, moved[:, 0] * sin + moved[:, 1] * cos, moved[:, 2]], 1)
    local[:, :2] += boxes[:, 3:5] / 2
    count = torch.tensor(list(sizes), device=boxes.device)
    return torch.minimum((local / (boxes[:, 3:6] / count)).long().clamp(min=0), count - 1)


@provides()
def roiaware_pool3d_backward(
    pts_idx_of_voxels: Tensor, argmax: Tensor, grad_out: Tensor, grad_in: Tensor, pool_method: int
) -> None:
    if pool_method == 0:
        index, grad = argmax.flatten(0, 3).long(), grad_out.flatten(0, 3)
        grad_in.scatter_add_(0, index.clamp(min=0), torch.where(index >= 0, grad, 0))
        return
    table, grad = pts_idx_of_voxels.flatten(0, 3).long(), grad_out.flatten(0, 3)
    cell, index = (torch.arange(table.shape[1] - 1, device=table.device) < table[:, :1]).nonzero().unbind(1)
    grad_in.index_add_(0, table[cell, index + 1], grad[cell] / table[cell, :1])
