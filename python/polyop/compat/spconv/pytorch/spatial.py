# SPDX-License-Identifier: Apache-2.0
"""`spconv.pytorch.spatial`."""

from __future__ import annotations

import torch

from polyop.compat.spconv.pytorch.core import SparseConvTensor
from polyop.compat.spconv.pytorch.modules import SparseModule

__all__ = ["RemoveDuplicate"]


class RemoveDuplicate(SparseModule):
    """Keeps the first row of each voxel, sorted by voxel."""

    def forward(self, x: SparseConvTensor) -> SparseConvTensor:
        cells, number = torch.unique(x.indices, dim=0, return_inverse=True)
        rows = torch.arange(len(number), device=number.device)
        first = rows.new_full((len(cells),), len(number)).scatter_reduce(0, number, rows, "amin")
        return SparseConvTensor(x.features[first], cells, x.spatial_shape, x.batch_size, x.grid)
