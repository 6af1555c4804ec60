# SPDX-License-Identifier: Apache-2.0
"""`pointnet2_cuda`, the compiled part of Pointnet2.PyTorch and PointRCNN: the functions of OpenPCDet's."""

from __future__ import annotations

from polyop.compat.pcdet.pointnet2_batch import (
    ball_query_wrapper,
    farthest_point_sampling_wrapper,
    gather_points_grad_wrapper,
    gather_points_wrapper,
    group_points_grad_wrapper,
    group_points_wrapper,
    three_interpolate_grad_wrapper,
    three_interpolate_wrapper,
    three_nn_wrapper,
)

__all__ = [
    "ball_query_wrapper", "furthest_point_sampling_wrapper", "gather_points_grad_wrapper", "gather_points_wrapper",
    "group_points_grad_wrapper", "group_points_wrapper", "three_interpolate_grad_wrapper", "three_interpolate_wrapper",
    "three_nn_wrapper",
]  # fmt: skip

furthest_point_sampling_wrapper = farthest_point_sampling_wrapper
