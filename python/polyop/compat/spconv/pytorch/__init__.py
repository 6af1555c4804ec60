# SPDX-License-Identifier: Apache-2.0
"""`spconv.pytorch`: tensors of voxels, and layers on them."""

from __future__ import annotations

from torch import Tensor

from polyop.compat.spconv.core import ConvAlgo
from polyop.compat.spconv.pytorch import conv, core, functional, identity, modules, ops, pool, spatial, tables, utils
from polyop.compat.spconv.pytorch.conv import (
    SparseConv1d,
    SparseConv2d,
    SparseConv3d,
    SparseConv4d,
    SparseConvTranspose1d,
    SparseConvTranspose2d,
    SparseConvTranspose3d,
    SparseConvTranspose4d,
    SparseInverseConv1d,
    SparseInverseConv2d,
    SparseInverseConv3d,
    SparseInverseConv4d,
    SubMConv1d,
    SubMConv2d,
    SubMConv3d,
    SubMConv4d,
)
from polyop.compat.spconv.pytorch.core import SparseConvTensor
from polyop.compat.spconv.pytorch.identity import Identity
from polyop.compat.spconv.pytorch.modules import (
    SparseBatchNorm,
    SparseIdentity,
    SparseModule,
    SparseReLU,
    SparseSequential,
    assign_name_for_sparse_modules,
)
from polyop.compat.spconv.pytorch.pool import (
    SparseAvgPool1d,
    SparseAvgPool2d,
    SparseAvgPool3d,
    SparseGlobalAvgPool,
    SparseGlobalMaxPool,
    SparseMaxPool1d,
    SparseMaxPool2d,
    SparseMaxPool3d,
    SparseMaxPool4d,
)
from polyop.compat.spconv.pytorch.tables import AddTable, ConcatTable, JoinTable

__all__ = [
    "AddTable", "ConcatTable", "ConvAlgo", "Identity", "JoinTable", "RemoveGrid", "SparseAvgPool1d", "SparseAvgPool2d",
    "SparseAvgPool3d", "SparseBatchNorm", "SparseConv1d", "SparseConv2d", "SparseConv3d", "SparseConv4d",
    "SparseConvTensor", "SparseConvTranspose1d", "SparseConvTranspose2d", "SparseConvTranspose3d",
    "SparseConvTranspose4d", "SparseGlobalAvgPool", "SparseGlobalMaxPool", "SparseIdentity", "SparseInverseConv1d",
    "SparseInverseConv2d", "SparseInverseConv3d", "SparseInverseConv4d", "SparseMaxPool1d", "SparseMaxPool2d",
    "SparseMaxPool3d", "SparseMaxPool4d", "SparseModule", "SparseReLU", "SparseSequential", "SubMConv1d", "SubMConv2d",
    "SubMConv3d", "SubMConv4d", "ToDense", "assign_name_for_sparse_modules", "conv", "core", "functional", "identity",
    "modules", "ops", "pool", "spatial", "tables", "utils",
]  # fmt: skip


class ToDense(SparseModule):
    """The dense tensor [B, C, *spatial_shape]."""

    def forward(self, x: SparseConvTensor) -> Tensor:
        return x.dense()


class RemoveGrid(SparseModule):
    """Releases the buffer that spconv 1 used; there is none here."""

    def forward(self, x: SparseConvTensor) -> SparseConvTensor:
        x.grid = None
        return x
