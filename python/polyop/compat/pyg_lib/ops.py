# SPDX-License-Identifier: Apache-2.0
"""The functions of pyg_lib.ops. PyTorch Geometric compiles some of them with TorchScript."""

import torch
from torch import Tensor

from polyop.compat.pyg_lib.functions import (
    edge_sample,
    fps,
    gather_coo,
    gather_csr,
    graclus_cluster,
    grid_cluster,
    grouped_matmul,
    index_sort,
    knn,
    nearest,
    radius,
    sampled_add,
    sampled_div,
    sampled_mul,
    sampled_sub,
    scatter,
    scatter_add,
    scatter_log_softmax,
    scatter_logsumexp,
    scatter_max,
    scatter_mean,
    scatter_min,
    scatter_mul,
    scatter_softmax,
    scatter_std,
    scatter_sum,
    segment_add_coo,
    segment_add_csr,
    segment_coo,
    segment_csr,
    segment_max_coo,
    segment_max_csr,
    segment_mean_coo,
    segment_mean_csr,
    segment_min_coo,
    segment_min_csr,
    segment_sum_coo,
    segment_sum_csr,
    spline_basis,
    spline_weighting,
)

__all__ = [
    "edge_sample", "fps", "gather_coo", "gather_csr", "graclus_cluster", "grid_cluster", "grouped_matmul",
    "index_sort", "knn", "nearest", "radius", "sampled_add", "sampled_div", "sampled_mul", "sampled_sub", "scatter",
    "scatter_add", "scatter_log_softmax", "scatter_logsumexp", "scatter_max", "scatter_mean", "scatter_min",
    "scatter_mul", "scatter_softmax", "scatter_std", "scatter_sum", "segment_add_coo", "segment_add_csr",
    "segment_coo", "segment_csr", "segment_matmul", "segment_max_coo", "segment_max_csr", "segment_mean_coo",
    "segment_mean_csr", "segment_min_coo", "segment_min_csr", "segment_sum_coo", "segment_sum_csr", "softmax_csr",
    "spline_basis", "spline_weighting",
]  # fmt: skip


def segment_matmul(inputs: Tensor, ptr: Tensor, other: Tensor, bias: Tensor | None = None) -> Tensor:
    """Rows [ptr[i], ptr[i + 1]) of `inputs` times other[i], plus bias[i]: [N, K], [B, K, M], [B, M] -> [N, M]."""
    result = torch.ops.pyg.segment_matmul(inputs, ptr, other)
    return result if bias is None else result + bias.repeat_interleave(ptr.diff().to(bias.device), 0)


def softmax_csr(src: Tensor, ptr: Tensor, dim: int = 0) -> Tensor:
    """The softmax of the elements [ptr[i], ptr[i + 1]) along a dimension."""
    return torch.ops.pyg.softmax_csr(src, ptr, dim)
