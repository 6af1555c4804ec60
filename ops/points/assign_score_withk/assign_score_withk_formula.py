# SPDX-License-Identifier: Apache-2.0
"""Gathers the features of neighbours, subtracts their centre's and sums by scores."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1, 2)


def formula(scores: Tensor, point_features: Tensor, center_features: Tensor, knn_idx: Tensor) -> Tensor:
    batches, points, matrices, size = point_features.shape
    index = knn_idx.long()
    valid = (index >= 0) & (index < points)
    valid = valid & valid[:, :, :1]
    first = torch.arange(batches, device=index.device)[:, None, None] * points

    def rows(features: Tensor, of: Tensor) -> Tensor:
        rows_of = torch.where((of >= 0) & (of < points), of, 0) + first
        gathered = features.reshape(batches * points, matrices, size).index_select(0, rows_of.flatten())
        return gathered.reshape(*rows_of.shape, matrices, size)

    difference = rows(point_features, index) - rows(center_features, index[:, :, :1])
    sums = (scores[..., None] * difference).sum(3)  # [B, P, K, O]
    return torch.where(valid[..., None], sums, 0).permute(0, 3, 1, 2)


def example(call: Call) -> list[Tensor]:
    return [torch.rand(2, 3, 4, 2), torch.rand(2, 5, 2, 6), torch.rand(2, 5, 2, 6), torch.randint(0, 5, (2, 3, 4))]
