# SPDX-License-Identifier: Apache-2.0
"""`spconv.pytorch.functional`: sums of tensors with different voxels."""

from __future__ import annotations

import torch

from polyop.compat.spconv.pytorch.core import SparseConvTensor

__all__ = ["sparse_add", "sparse_add_hash_based"]


def sparse_add(*tens: SparseConvTensor) -> SparseConvTensor:
    """Returns the sum, with the voxels of all tensors, sorted. The pairs of earlier layers are kept if one tensor has
    all voxels."""
    first = tens[0]
    for x in tens:
        if x.spatial_shape != first.spatial_shape or x.batch_size != first.batch_size:
            raise ValueError(
                f"sparse_add: expected batch {first.batch_size} and shape {first.spatial_shape}, got {x.batch_size} "
                f"and {x.spatial_shape}"
            )
    cells, number = torch.unique(torch.cat([x.indices for x in tens]), dim=0, return_inverse=True)
    features = torch.cat([x.features for x in tens])
    total = features.new_zeros(len(cells), features.shape[1]).index_add(0, number, features)
    largest = max(tens, key=lambda x: len(x.indices))
    same = len(largest.indices) == len(cells) and torch.equal(largest.indices, cells)
    return SparseConvTensor(
        total, cells, first.spatial_shape, first.batch_size, indice_dict=largest.indice_dict if same else None
    )


sparse_add_hash_based = sparse_add
