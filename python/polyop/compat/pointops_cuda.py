# SPDX-License-Identifier: Apache-2.0
"""`pointops_cuda`, the compiled part of Point Transformer's pointops, also on the CPU: functions write into outputs
that the caller allocates. The arguments that repeat extents of tensors have no effect."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.compat.mmcv_ext._registry import gradients
from polyop.compat.pointops import aggregation, farthest_point_sampling, grouping2, knn_query, subtraction

__all__ = [
    "aggregation_backward_cuda", "aggregation_forward_cuda", "furthestsampling_cuda", "grouping_backward_cuda",
    "grouping_forward_cuda", "interpolation_backward_cuda", "interpolation_forward_cuda", "knnquery_cuda",
    "subtraction_backward_cuda", "subtraction_forward_cuda",
]  # fmt: skip


def knnquery_cuda(
    m: int, nsample: int, xyz: Tensor, new_xyz: Tensor, offset: Tensor, new_offset: Tensor, idx: Tensor, dist2: Tensor
) -> None:
    """The nearest points of the query's cloud, and their squared distances. Missing ones are the cloud's first point,
    at 1e10."""
    del m
    found, distances = knn_query(nsample, xyz, offset, new_xyz, new_offset)
    starts = torch.cat([offset.new_zeros(1), offset[:-1]])
    cloud = torch.bucketize(torch.arange(len(new_xyz), device=offset.device), new_offset, right=True)
    idx.copy_(torch.where(found < 0, starts[cloud][:, None].to(found), found))
    dist2.copy_(distances.square())


def furthestsampling_cuda(
    b: int, n: int, xyz: Tensor, offset: Tensor, new_offset: Tensor, tmp: Tensor, idx: Tensor
) -> None:
    del b, n, tmp
    idx.copy_(farthest_point_sampling(xyz, offset, new_offset))


def grouping_forward_cuda(m: int, nsample: int, c: int, input: Tensor, idx: Tensor, output: Tensor) -> None:
    del m, nsample, c
    output.copy_(grouping2(input, idx))


def grouping_backward_cuda(m: int, nsample: int, c: int, grad_output: Tensor, idx: Tensor, grad_input: Tensor) -> None:
    del m, nsample, c
    grad_input.index_add_(0, idx.flatten().long(), grad_output.flatten(0, 1))


def interpolation_forward_cuda(
    n: int, c: int, k: int, input: Tensor, idx: Tensor, weight: Tensor, output: Tensor
) -> None:
    """Adds the weighted sums of k rows to the output."""
    del n, c, k
    output.add_((input[idx.long()] * weight[..., None]).sum(1))


def interpolation_backward_cuda(
    n: int, c: int, k: int, grad_output: Tensor, idx: Tensor, weight: Tensor, grad_input: Tensor
) -> None:
    del n, c, k
    grad_input.index_add_(0, idx.flatten().long(), (grad_output[:, None] * weight[..., None]).flatten(0, 1))


def subtraction_forward_cuda(
    n: int, nsample: int, c: int, input1: Tensor, input2: Tensor, idx: Tensor, output: Tensor
) -> None:
    del n, nsample, c
    output.copy_(subtraction(input1, input2, idx))


def subtraction_backward_cuda(
    n: int, nsample: int, c: int, idx: Tensor, grad_output: Tensor, grad_input1: Tensor, grad_input2: Tensor
) -> None:
    del n, nsample, c
    grad_input1.add_(grad_output.sum(1))
    grad_input2.index_add_(0, idx.flatten().long(), -grad_output.flatten(0, 1))


def aggregation_forward_cuda(
    n: int, nsample: int, c: int, w_c: int, input: Tensor, position: Tensor, weight: Tensor, idx: Tensor,
    output: Tensor,
) -> None:  # fmt: skip
    del n, nsample, c, w_c
    output.add_(aggregation(input, position, weight, idx))


def aggregation_backward_cuda(
    n: int, nsample: int, c: int, w_c: int, input: Tensor, position: Tensor, weight: Tensor, idx: Tensor,
    grad_output: Tensor, grad_input: Tensor, grad_position: Tensor, grad_weight: Tensor,
) -> None:  # fmt: skip
    del n, nsample, c, w_c

    def forward(input: Tensor, position: Tensor, weight: Tensor) -> Tensor:
        return aggregation(input, position, weight, idx)

    of_input, of_position, of_weight = gradients(forward, (input, position, weight), grad_output)
    grad_input.add_(of_input)
    grad_position.copy_(of_position)
    grad_weight.add_(of_weight)
