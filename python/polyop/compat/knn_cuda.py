# SPDX-License-Identifier: Apache-2.0
"""The package knn_cuda, with its names and arguments, also on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from polyop.compat._neighbours import nearest_of_batch

__all__ = ["KNN", "__version__", "knn"]

__version__ = "0.2"  # whose functions these are


def _search(ref: Tensor, query: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Points [B, N, F] and queries [B, M, F] -> distances and indices [B, M, k], nearest first."""
    ref, query = ref.detach().float(), query.detach().float()
    found = nearest_of_batch(ref, query, k)
    near = ref[torch.arange(len(ref), device=ref.device)[:, None, None], found]
    return (near - query[:, :, None]).square().sum(-1).sqrt(), found


def knn(ref: Tensor, query: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Points [F, N] and queries [F, M] -> distances and indices [k, M]."""
    distances, found = _search(ref.mT[None], query.mT[None], k)
    return distances[0].mT.contiguous(), found[0].mT.contiguous()


class KNN(nn.Module):
    """Points [B, F, N] and queries [B, F, M] -> distances and indices [B, k, M]; with `transpose_mode` [B, N, F], [B,
    M, F] -> [B, M, k]. Without gradients."""

    def __init__(self, k: int, transpose_mode: bool = False) -> None:
        super().__init__()
        self.k, self._t = k, transpose_mode

    def forward(self, ref: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        if self._t:
            return _search(ref, query, self.k)
        distances, found = _search(ref.mT, query.mT, self.k)
        return distances.mT.contiguous(), found.mT.contiguous()
