# SPDX-License-Identifier: Apache-2.0
"""Gather columns of features by index."""

from __future__ import annotations

import torch
from torch import Tensor


def gather_columns(features: Tensor, idx: Tensor) -> Tensor:
    """features [B, C, N], idx [B, ...] -> [B, C, ...]."""
    columns = idx.flatten(1).long()[:, None].expand(-1, features.shape[1], -1)
    return torch.gather(features, 2, columns).unflatten(2, idx.shape[1:])
