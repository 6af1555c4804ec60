# SPDX-License-Identifier: Apache-2.0
"""The functions of several operators, or of an operator and what its results need, for every framework.

A function whose first parameter is `call` returns what one call of an operator returns. One whose first parameter is
`arrays` also computes with arrays. `NEEDS` names the operators of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Call = Callable[..., Any]
"""call(operator, inputs, {attribute: value}, outputs=None) returns the first `outputs` outputs, or all."""


class Arrays:
    """A framework's arrays, which have the indexing of NumPy. `by_name` is set by functions.define_all."""

    by_name: Call

    def call(self, *args: Any) -> Any:
        return self.by_name(*args)

    def of(self, value: Any, name: str, operator: str) -> Any:
        """Returns the caller's value, of the parameter `name`, as an array."""
        raise NotImplementedError

    def concatenate(self, arrays: Sequence[Any], axis: int) -> Any:
        raise NotImplementedError

    def float32(self, array: Any) -> Any:
        return array.astype("float32")

    def result(self, array: Any) -> Any:
        """Returns an array as the framework returns outputs."""
        return array

    def integers(self, values: list[int], like: Any) -> Any:
        """Returns an array of the values on the device of another array."""
        raise NotImplementedError


NEEDS = {
    "assign_score_withk": ("assign_score_withk",),
    "ball_query": ("ball_query", "stacked_ball_query"),
    "bev_pool_v2": ("bev_pool", "bev_pool_volume"),
    "box_iou_quadri": ("box_iou_quadri",),
    "box_iou_rotated": ("box_iou_rotated",),
    "convex_giou": ("convex_giou",),
    "nms_match": ("nms_match",),
    "voxelization": ("hard_voxelize", "dynamic_voxelize"),
}


def assign_score_withk(
    call: Call, scores: Any, point_features: Any, center_features: Any, knn_idx: Any, aggregate: str = "sum"
) -> Any:
    """`mmcv.ops.assign_score_withk` (PAConv): scores [B, P, K, M], two features [B, N, M, O] -> [B, O, P, K]."""
    if aggregate != "sum":  # MMCV computes the sum for other values, too
        raise ValueError(f"aggregate: expected 'sum', got '{aggregate}'")
    return call("assign_score_withk", (scores, point_features, center_features, knn_idx), {})


def ball_query(
    call: Call,
    min_radius: float,
    max_radius: float,
    sample_num: int,
    xyz: Any,
    center_xyz: Any,
    xyz_batch_cnt: Any = None,
    center_xyz_batch_cnt: Any = None,
) -> Any:
    """`mmcv.ops.ball_query`: the first points [B, N, 3] within a distance of each centre [B, M, 3] -> [B, M,
    sample_num].

    With counts, clouds of different sizes are concatenated: [N, 3], [M, 3] -> [M, sample_num].
    """
    radii = {"min_radius": min_radius, "max_radius": max_radius, "sample_num": sample_num}
    if (xyz_batch_cnt is None) != (center_xyz_batch_cnt is None):
        raise ValueError("ball_query: expected both xyz_batch_cnt and center_xyz_batch_cnt, or neither, got one")
    if xyz_batch_cnt is None:
        return call("ball_query", (xyz, center_xyz), radii)
    return call("stacked_ball_query", (xyz, xyz_batch_cnt, center_xyz, center_xyz_batch_cnt), radii)


def bev_pool_v2(
    call: Call,
    depth: Any,
    feat: Any,
    ranks_depth: Any,
    ranks_feat: Any,
    ranks_bev: Any,
    interval_starts: Any,
    interval_lengths: Any,
    out_height: int,
    out_width: int,
    output_z: int = 1,
) -> Any:
    """BEVDet's pooling: features [N, H, W, C] weighted by depth [N, D, H, W], summed by intervals -> [1, oh, ow, C].

    For several layers, ranks_bev contains the cells (z * oh + y) * ow + x -> [1, output_z, oh, ow, C].
    """
    inputs = (depth, feat, ranks_depth, ranks_feat, ranks_bev, interval_starts, interval_lengths)
    sizes = {"out_height": out_height, "out_width": out_width}
    if output_z == 1:
        return call("bev_pool", inputs, sizes)
    return call("bev_pool_volume", inputs, {**sizes, "output_z": output_z})


def voxelization(
    call: Call,
    points: Any,
    voxel_size: Sequence[float],
    coors_range: Sequence[float],
    max_points: int = 35,
    max_voxels: int = 20000,
    deterministic: bool = True,
) -> Any:
    """`mmcv.ops.voxelization`: points [N, F] -> (voxels [V, max_points, F], coors [V, 3] as z, y, x, num_points [V]).

    If max_points or max_voxels is -1, returns only the voxel of each point, coors [N, 3].
    """
    del deterministic  # the operator is always deterministic
    grid = {"voxel_size": voxel_size, "point_cloud_range": coors_range}
    if max_points == -1 or max_voxels == -1:
        return call("dynamic_voxelize", (points,), grid)
    return call("hard_voxelize", (points,), {**grid, "max_num_points": max_points, "max_voxels": max_voxels}, 3)


def _overlaps(arrays: Arrays, op: str, boxes_a: Any, boxes_b: Any, mode: str, aligned: bool) -> Any:
    if aligned:
        boxes_a, boxes_b = boxes_a[:, None], boxes_b[:, None]
    overlaps = arrays.call(op, (boxes_a, boxes_b), {"mode": mode})
    return arrays.result(overlaps.reshape(-1) if aligned else overlaps)


def box_iou_quadri(arrays: Arrays, boxes_a: Any, boxes_b: Any, mode: str = "iou", aligned: bool = False) -> Any:
    """`mmcv.ops.box_iou_quadri`: (x1, y1, ..., x4, y4) [M, 8] and [N, 8] -> [M, N]; if aligned, of pairs -> [N]."""
    op = "box_iou_quadri"
    boxes_a, boxes_b = arrays.of(boxes_a, "boxes_a", op), arrays.of(boxes_b, "boxes_b", op)
    return _overlaps(arrays, op, boxes_a, boxes_b, mode, aligned)


def box_iou_rotated(
    arrays: Arrays, boxes_a: Any, boxes_b: Any, mode: str = "iou", aligned: bool = False, clockwise: bool = True
) -> Any:
    """`mmcv.ops.box_iou_rotated`: boxes (cx, cy, w, h, angle) [M, 5] and [N, 5] -> [M, N]; if aligned, of pairs -> [N].

    Mode "iou" divides by the area of the union, "iof" by that of the first box. Angles are clockwise, or else
    counterclockwise.
    """
    op = "box_iou_rotated"
    boxes_a, boxes_b = arrays.of(boxes_a, "boxes_a", op), arrays.of(boxes_b, "boxes_b", op)
    if not clockwise:
        boxes_a, boxes_b = (arrays.concatenate([b[..., :4], -b[..., 4:]], -1) for b in (boxes_a, boxes_b))
    return _overlaps(arrays, op, boxes_a, boxes_b, mode, aligned)


def convex_giou(arrays: Arrays, pointsets: Any, polygons: Any) -> tuple[Any, Any]:
    """`mmcv.ops.convex_giou`: GIoU [N] of pairs of the hull of nine points [N, 18] and a quadrilateral [N, 8], and its
    gradient with respect to the points [N, 18].
    """
    op = "convex_giou"
    result = arrays.call(op, (arrays.of(pointsets, "pointsets", op), arrays.of(polygons, "polygons", op)), {})
    return arrays.result(result[:, 18]), arrays.result(result[:, :18])


def nms_match(arrays: Arrays, dets: Any, iou_threshold: float) -> list[Any]:
    """`mmcv.ops.nms_match`: groups of indices of `dets` [N, 5] (box, score). Each group is a kept box, followed by the
    boxes that it suppresses; groups are sorted by descending score."""
    dets = arrays.of(dets, "dets", "nms_match")
    if dets.shape[0] == 0:
        return []
    if len(dets.shape) != 2 or dets.shape[1] != 5:
        raise ValueError(f"polyop::nms_match: 'dets': expected shape [N, 5], got {list(dets.shape)}")
    boxes, scores = arrays.float32(dets[None, :, :4]), arrays.float32(dets[None, None, :, 4])
    matches = arrays.call("nms_match", (boxes, scores, float(iou_threshold), float("-inf")), {})
    if isinstance(matches, tuple):  # JAX's, which has as many rows as there could be
        matches = matches[0][: int(matches[1])]
    pairs, values = matches[:, 2:].tolist(), dets[:, 4].tolist()
    suppressed = {other for _, other in pairs}
    order = sorted(range(len(values)), key=lambda i: (values[i] != values[i], values[i]), reverse=True)  # NaN first
    groups = {i: [i] for i in order if i not in suppressed}
    for keeper, other in pairs:
        groups[keeper].append(other)
    return [arrays.integers(group, dets) for group in groups.values()]
