# SPDX-License-Identifier: Apache-2.0
"""`pcdet.ops.pointnet2.pointnet2_batch.pointnet2_batch_cuda`: clouds of equal size. The arguments that repeat extents
of tensors have no effect."""

from __future__ import annotations

from torch import Tensor

from polyop.compat.mmcv_ext import points as _points

__all__ = [
    "ball_query_wrapper", "farthest_point_sampling_wrapper", "gather_points_grad_wrapper", "gather_points_wrapper",
    "group_points_grad_wrapper", "group_points_wrapper", "three_interpolate_grad_wrapper", "three_interpolate_wrapper",
    "three_nn_wrapper",
]  # fmt: skip


def ball_query_wrapper(
    b: int, n: int, m: int, radius: float, nsample: int, new_xyz: Tensor, xyz: Tensor, idx: Tensor
) -> int:
    """idx [B, M, nsample]: the first points of xyz [B, N, 3] nearer than `radius` to each of new_xyz [B, M, 3]."""
    _points.ball_query_forward(new_xyz, xyz, idx, b, n, m, 0.0, radius, nsample)
    return 1


def group_points_wrapper(
    b: int, c: int, n: int, npoints: int, nsample: int, points: Tensor, idx: Tensor, out: Tensor
) -> int:
    """points [B, C, N], idx [B, M, K] -> out [B, C, M, K]."""
    _points.group_points_forward(points, idx, out, b, c, n, npoints, nsample)
    return 1


def group_points_grad_wrapper(
    b: int, c: int, n: int, npoints: int, nsample: int, grad_out: Tensor, idx: Tensor, grad_points: Tensor
) -> int:
    """Adds the gradient of the points to grad_points [B, C, N]."""
    _points.group_points_backward(grad_out, idx, grad_points, b, c, n, npoints, nsample)
    return 1


def gather_points_wrapper(b: int, c: int, n: int, npoints: int, points: Tensor, idx: Tensor, out: Tensor) -> int:
    """points [B, C, N], idx [B, M] -> out [B, C, M]."""
    _points.gather_points_forward(points, idx, out, b, c, n, npoints)
    return 1


def gather_points_grad_wrapper(
    b: int, c: int, n: int, npoints: int, grad_out: Tensor, idx: Tensor, grad_points: Tensor
) -> int:
    """Adds the gradient of the points to grad_points [B, C, N]."""
    _points.gather_points_backward(grad_out, idx, grad_points, b, c, n, npoints)
    return 1


def farthest_point_sampling_wrapper(b: int, n: int, m: int, points: Tensor, temp: Tensor, idx: Tensor) -> int:
    """idx [B, m]: points of [B, N, 3], each the farthest from those before. `temp` is not used."""
    _points.furthest_point_sampling_forward(points, temp, idx, b, n, m)
    return 1


def three_nn_wrapper(b: int, n: int, m: int, unknown: Tensor, known: Tensor, dist2: Tensor, idx: Tensor) -> None:
    """The squared distances and indices [B, N, 3] of the three points of `known` nearest to each of `unknown`."""
    _points.three_nn_forward(unknown, known, dist2, idx, b, n, m)


def three_interpolate_wrapper(
    b: int, c: int, m: int, n: int, points: Tensor, idx: Tensor, weight: Tensor, out: Tensor
) -> None:
    """points [B, C, M], idx and weight [B, N, 3] -> out [B, C, N]."""
    _points.three_interpolate_forward(points, idx, weight, out, b, c, m, n)


def three_interpolate_grad_wrapper(
    b: int, c: int, n: int, m: int, grad_out: Tensor, idx: Tensor, weight: Tensor, grad_points: Tensor
) -> None:
    """Adds the gradient of the points to grad_points [B, C, M]."""
    _points.three_interpolate_backward(grad_out, idx, weight, grad_points, b, c, n, m)
