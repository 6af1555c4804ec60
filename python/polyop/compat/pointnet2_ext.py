# SPDX-License-Identifier: Apache-2.0
"""`pointnet2_ops._ext`, the compiled part of pointnet2_ops."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop import functional
from polyop.compat.mmcv_ext._registry import gradients_of

__all__ = [
    "ball_query", "furthest_point_sampling", "gather_points", "gather_points_grad", "group_points",
    "group_points_grad", "three_interpolate", "three_interpolate_grad", "three_nn",
]  # fmt: skip


def furthest_point_sampling(points: Tensor, nsamples: int) -> Tensor:
    """points [B, N, 3] -> i32 indices [B, nsamples]. pointnet2_ops never selects points within 0.03 of the origin;
    polyop does not treat them differently."""
    return functional.furthest_point_sample(points, nsamples)


def gather_points(points: Tensor, idx: Tensor) -> Tensor:
    """points [B, C, N], idx [B, M] -> [B, C, M]."""
    return functional.gather_points(points, idx)


def gather_points_grad(grad_out: Tensor, idx: Tensor, n: int) -> Tensor:
    """The gradient of `gather_points` for N = n points."""
    points = grad_out.new_zeros(grad_out.shape[0], grad_out.shape[1], n)
    return gradients_of("gather_points", [points, idx], grad_out, [0])[0]


def group_points(points: Tensor, idx: Tensor) -> Tensor:
    """points [B, C, N], idx [B, M, K] -> [B, C, M, K]."""
    return functional.grouping_operation(points, idx)


def group_points_grad(grad_out: Tensor, idx: Tensor, n: int) -> Tensor:
    """The gradient of `group_points` for N = n points."""
    points = grad_out.new_zeros(grad_out.shape[0], grad_out.shape[1], n)
    return gradients_of("group_points", [points, idx], grad_out, [0])[0]


def three_nn(unknowns: Tensor, knows: Tensor) -> tuple[Tensor, Tensor]:
    """The squared distances and indices [B, N, 3] of the three points of `knows` nearest to each of `unknowns`."""
    distances, indices = functional.three_nn(unknowns, knows)
    return distances.square(), indices


def three_interpolate(points: Tensor, idx: Tensor, weight: Tensor) -> Tensor:
    """points [B, C, M], idx and weight [B, N, 3] -> [B, C, N]."""
    return functional.three_interpolate(points, idx, weight)


def three_interpolate_grad(grad_out: Tensor, idx: Tensor, weight: Tensor, m: int) -> Tensor:
    """The gradient of `three_interpolate` for M = m points."""
    points = grad_out.new_zeros(grad_out.shape[0], grad_out.shape[1], m)
    return gradients_of("three_interpolate", [points, idx, weight], grad_out, [0])[0]


def ball_query(new_xyz: Tensor, xyz: Tensor, radius: float, nsample: int) -> Tensor:
    """i32 indices [B, M, nsample] of the first points of xyz [B, N, 3] closer than `radius` to each of new_xyz [B, M,
    3]; the first one fills up."""
    return functional.ball_query(0.0, radius, nsample, xyz, new_xyz).to(torch.int32)
