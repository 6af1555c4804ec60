"""Neighbours' features less their centre's, gathered and summed by scores."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call

DIFFERENTIABLE = (0, 1, 2)


def formula(scores: Tensor, point_features: Tensor, center_features: Tensor, knn_idx: Tensor) -> Tensor:
    batches, points, matrices, size = point_features.shape
    index = knn_idx.long()
    there = (index >= 0) & (index < points)
    there = there & there[:, :, :1]
    first = torch.arange(batches, device=index.device)[:, None, None] * points

    def rows(features: Tensor, of: Tensor) -> Tensor:
        places = torch.where((of >= 0) & (of < points), of, 0) + first
        taken = features.reshape(batches * points, matrices, size).index_select(0, places.flatten())
        return taken.reshape(*places.shape, matrices, size)

    away = rows(point_features, index) - rows(center_features, index[:, :, :1])
    sums = (scores[..., None] * away).sum(3)  # [B, P, K, O]
    return torch.where(there[..., None], sums, 0).permute(0, 3, 1, 2)


def example(call: Call) -> list[Tensor]:
    return [torch.rand(2, 3, 4, 2), torch.rand(2, 5, 2, 6), torch.rand(2, 5, 2, 6), torch.randint(0, 5, (2, 3, 4))]
