# SPDX-License-Identifier: Apache-2.0
"""`spconv.pytorch.pool`: pooling over existing voxels."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from polyop.compat.spconv.core import ConvAlgo
from polyop.compat.spconv.pytorch.conv import Paired
from polyop.compat.spconv.pytorch.core import SparseConvTensor
from polyop.compat.spconv.pytorch.modules import SparseModule

__all__ = [
    "SparseAvgPool", "SparseAvgPool1d", "SparseAvgPool2d", "SparseAvgPool3d", "SparseGlobalAvgPool",
    "SparseGlobalMaxPool", "SparseMaxPool", "SparseMaxPool1d", "SparseMaxPool2d", "SparseMaxPool3d", "SparseMaxPool4d",
]  # fmt: skip

_Sizes = int | Sequence[int]


class _Pool(Paired):
    def __init__(
        self,
        ndim: int,
        kernel_size: _Sizes = 3,
        stride: _Sizes | None = 1,
        padding: _Sizes = 0,
        dilation: _Sizes = 1,
        indice_key: str | None = None,
        subm: bool = False,
        algo: ConvAlgo | None = None,
        record_voxel_count: bool = False,
        name: str | None = None,
    ) -> None:
        steps = kernel_size if stride is None else stride
        super().__init__(
            ndim, kernel_size, steps, padding, dilation, 0, subm, False, indice_key, algo, 128, record_voxel_count, name
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"algo={self.algo}"
        )


class SparseMaxPool(_Pool):
    """The maximum. With ConvAlgo.Native it is at least 0."""

    def forward(self, input: SparseConvTensor) -> SparseConvTensor:
        self._check(input)
        data = self._find(input)
        greatest = data.pairs.maximum(input.features)
        return self._output(input, data, greatest.clamp(min=0) if self.algo == ConvAlgo.Native else greatest)


class SparseAvgPool(_Pool):
    """The mean of existing voxels."""

    def forward(self, input: SparseConvTensor) -> SparseConvTensor:
        self._check(input)
        data = self._find(input)
        return self._output(input, data, data.pairs.mean(input.features))


class _MaxPool(SparseMaxPool):
    _dimensions = 3

    def __init__(
        self,
        kernel_size: _Sizes,
        stride: _Sizes | None = None,
        padding: _Sizes = 0,
        dilation: _Sizes = 1,
        indice_key: str | None = None,
        algo: ConvAlgo | None = None,
        record_voxel_count: bool = False,
        name: str | None = None,
    ) -> None:
        """The default stride is the kernel's size."""
        super().__init__(
            self._dimensions, kernel_size, stride, padding, dilation, indice_key, algo=algo,
            record_voxel_count=record_voxel_count, name=name,
        )  # fmt: skip


class _AvgPool(SparseAvgPool):
    _dimensions = 3

    def __init__(
        self,
        kernel_size: _Sizes,
        stride: _Sizes | None = None,
        padding: _Sizes = 0,
        dilation: _Sizes = 1,
        indice_key: str | None = None,
        algo: ConvAlgo | None = None,
        record_voxel_count: bool = False,
        name: str | None = None,
    ) -> None:
        """The default stride is the kernel's size."""
        super().__init__(
            self._dimensions, kernel_size, stride, padding, dilation, indice_key, algo=algo,
            record_voxel_count=record_voxel_count, name=name,
        )  # fmt: skip


class SparseMaxPool1d(_MaxPool):
    _dimensions = 1


class SparseMaxPool2d(_MaxPool):
    _dimensions = 2


class SparseMaxPool3d(_MaxPool):
    _dimensions = 3


class SparseMaxPool4d(_MaxPool):
    """Not available: its constructor raises NotImplementedError."""

    _dimensions = 4


class SparseAvgPool1d(_AvgPool):
    _dimensions = 1


class SparseAvgPool2d(_AvgPool):
    _dimensions = 2


class SparseAvgPool3d(_AvgPool):
    _dimensions = 3


class SparseGlobalMaxPool(SparseModule):
    """The maximum of each sample's voxels, [B, C]."""

    def forward(self, input: SparseConvTensor) -> Tensor:
        features = input.features
        result = features.new_full((input.batch_size, features.shape[1]), -torch.inf)
        index = input.indices[:, :1].long().expand_as(features)
        return result.scatter_reduce(0, index, features, "amax")


class SparseGlobalAvgPool(SparseModule):
    """The mean of each sample's voxels, [B, C]."""

    def forward(self, input: SparseConvTensor) -> Tensor:
        features, sample = input.features, input.indices[:, 0].long()
        total = features.new_zeros(input.batch_size, features.shape[1]).index_add(0, sample, features)
        ones = torch.ones_like(sample, dtype=features.dtype)
        return total / features.new_zeros(input.batch_size).index_add(0, sample, ones)[:, None]
