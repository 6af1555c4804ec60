# SPDX-License-Identifier: Apache-2.0
"""`spconv.pytorch.tables`: sums and concatenations of tensors with the same voxels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from polyop.compat.spconv.pytorch.core import SparseConvTensor
from polyop.compat.spconv.pytorch.functional import sparse_add
from polyop.compat.spconv.pytorch.modules import SparseModule

__all__ = ["AddTable", "AddTableMisaligned", "ConcatTable", "JoinTable"]


def _check(table: str, tensors: Sequence[SparseConvTensor]) -> None:
    first = tensors[0]
    for x in tensors[1:]:
        if (
            x.spatial_shape != first.spatial_shape
            or x.batch_size != first.batch_size
            or len(x.indices) != len(first.indices)
        ):
            raise ValueError(f"{table}: expected tensors with the same voxels, got {list(tensors)}")


class JoinTable(SparseModule):
    """The channels of all tensors."""

    def forward(self, input: Sequence[SparseConvTensor]) -> SparseConvTensor:
        _check("JoinTable", input)
        return input[0].replace_feature(torch.cat([x.features for x in input], 1))


class AddTable(SparseModule):
    """The sum of tensors."""

    def forward(self, input: Sequence[SparseConvTensor]) -> SparseConvTensor:
        _check("AddTable", input)
        return input[0].replace_feature(sum(x.features for x in input))


class AddTableMisaligned(SparseModule):
    """The sum of tensors with different voxels."""

    def forward(self, input: Sequence[SparseConvTensor]) -> SparseConvTensor:
        return sparse_add(*input)


class ConcatTable(SparseModule):
    """The results of several layers on one tensor."""

    def forward(self, input: Any) -> list[Any]:
        return [layer(input) for layer in self._modules.values()]

    def add(self, module: nn.Module) -> ConcatTable:
        self.add_module(str(len(self._modules)), module)
        return self
