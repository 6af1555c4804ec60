# SPDX-License-Identifier: Apache-2.0
"""`spconv.pytorch.core`: tensors of voxels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from polyop.compat.spconv.core import ConvAlgo

if TYPE_CHECKING:
    from polyop.sparse import IndicePairs

__all__ = ["ImplicitGemmIndiceData", "IndiceData", "SparseConvTensor", "expand_nd", "scatter_nd"]


def expand_nd(ndim: int, val: int | Sequence[int] | np.ndarray) -> list[int]:
    """Returns a number per dimension."""
    values = [int(val)] * ndim if isinstance(val, (int, np.integer)) else [int(v) for v in val]
    if len(values) != ndim:
        raise ValueError(f"expected {ndim} numbers, got {len(values)}: {values}")
    return values


def scatter_nd(indices: Tensor, updates: Tensor, shape: Sequence[int]) -> Tensor:
    """Returns zeros of this shape with the rows `updates` at `indices`. Does not add where indices repeat."""
    result = updates.new_zeros(shape)
    rows = updates.reshape(-1, *shape[indices.shape[-1] :])
    return result.index_put(tuple(indices.reshape(-1, indices.shape[-1]).long().unbind(1)), rows)


@dataclass
class IndiceData:
    """The pairs of a layer, which an indice_key identifies."""

    pairs: IndicePairs
    algo: ConvAlgo

    @property
    def indices(self) -> Tensor:
        return self.pairs.in_indices

    @property
    def out_indices(self) -> Tensor:
        return self.pairs.out_indices

    @property
    def spatial_shape(self) -> list[int]:
        return self.pairs.in_shape

    @property
    def out_spatial_shape(self) -> list[int]:
        return self.pairs.out_shape

    @property
    def is_subm(self) -> bool:
        return self.pairs.filter.subm

    @property
    def ksize(self) -> list[int]:
        return list(self.pairs.filter.kernel_size)

    @property
    def stride(self) -> list[int]:
        return list(self.pairs.filter.stride)

    @property
    def padding(self) -> list[int]:
        return list(self.pairs.filter.padding)

    @property
    def dilation(self) -> list[int]:
        return list(self.pairs.filter.dilation)

    @property
    def pair_fwd(self) -> Tensor:
        """The row that each position of the filter reads for each output, -1 without one: [positions, outputs]."""
        return self.pairs.pair_fwd

    @property
    def indice_pair_num(self) -> Tensor:
        """The number of pairs of each position of the filter."""
        return (self.pair_fwd >= 0).sum(1).to(torch.int32)

    @property
    def indice_pairs(self) -> Tensor:
        """The input rows and output rows of the pairs, -1 after the last one: [2, positions, rows]."""
        positions, outputs = self.pair_fwd.shape
        rows = torch.arange(outputs, device=self.pair_fwd.device, dtype=torch.int32).expand(positions, -1)
        order = torch.argsort((self.pair_fwd < 0).to(torch.int8), dim=1, stable=True)
        sources = self.pair_fwd.gather(1, order)
        targets = torch.where(sources < 0, -1, rows.gather(1, order))
        return torch.stack([sources, targets])


ImplicitGemmIndiceData = IndiceData


class SparseConvTensor:
    """Features [N, C] of voxels whose indices i32 [N, 1 + D] are (batch, *position)."""

    def __init__(
        self,
        features: Tensor,
        indices: Tensor,
        spatial_shape: Sequence[int] | np.ndarray,
        batch_size: int,
        grid: Tensor | None = None,
        voxel_num: Tensor | None = None,
        indice_dict: dict[str, IndiceData] | None = None,
        benchmark: bool = False,
        permanent_thrust_allocator: bool = False,
        enable_timer: bool = False,
        force_algo: ConvAlgo | None = None,
    ) -> None:
        """`grid`, `voxel_num` and what follows `indice_dict` are kept, and have no effect."""
        if features.dim() != 2:
            raise ValueError(f"SparseConvTensor: features: expected shape [N, C], got {list(features.shape)}")
        if indices.dim() != 2 or indices.shape[1] != len(spatial_shape) + 1:
            raise ValueError(
                f"SparseConvTensor: indices: expected shape [N, {len(spatial_shape) + 1}], got {list(indices.shape)}"
            )
        if indices.dtype != torch.int32:
            raise ValueError(f"SparseConvTensor: indices: expected i32, got {indices.dtype}")
        del permanent_thrust_allocator, enable_timer
        self._features = features
        self.indices = indices
        self.spatial_shape = [int(v) for v in spatial_shape]
        self.batch_size = int(batch_size)
        self.indice_dict = {} if indice_dict is None else indice_dict
        self.grid = grid
        self.voxel_num = voxel_num
        self.benchmark = benchmark
        self.benchmark_record: dict[str, Any] = {}
        self.thrust_allocator = None
        self.force_algo = force_algo
        self.int8_scale = None

    def __repr__(self) -> str:
        return f"SparseConvTensor[shape={self._features.shape}]"

    @property
    def features(self) -> Tensor:
        return self._features

    @features.setter
    def features(self, value: Tensor) -> None:
        raise ValueError("SparseConvTensor: features cannot be set: expected x = x.replace_feature(features)")

    @property
    def is_quantized(self) -> bool:
        return self._features.dtype == torch.qint8

    @property
    def spatial_size(self) -> int:
        return math.prod(self.spatial_shape)

    def shadow_copy(self) -> SparseConvTensor:
        """Returns a tensor with the same members."""
        copy = SparseConvTensor.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    def replace_feature(self, feature: Tensor) -> SparseConvTensor:
        copy = self.shadow_copy()
        copy._features = feature
        return copy

    def select_by_index(self, valid_indices: Tensor) -> SparseConvTensor:
        """Returns these rows, without the pairs of earlier layers."""
        copy = self.replace_feature(self._features[valid_indices])
        copy.indices = self.indices[valid_indices]
        copy.indice_dict = {}
        return copy

    def minus(self) -> SparseConvTensor:
        return self.replace_feature(-self._features)

    @classmethod
    def from_dense(cls, x: Tensor) -> SparseConvTensor:
        """Returns the voxels of x [B, *spatial_shape, C] with any nonzero feature."""
        indices = (x != 0).any(-1).nonzero()
        return cls(x[tuple(indices.T)], indices.int(), list(x.shape[1:-1]), x.shape[0])

    def find_indice_pair(self, key: str | None) -> IndiceData | None:
        return None if key is None else self.indice_dict.get(key)

    def dense(self, channels_first: bool = True) -> Tensor:
        """Returns the dense tensor [B, C, *spatial_shape], 0 without voxels."""
        result = scatter_nd(
            self.indices, self._features, [self.batch_size, *self.spatial_shape, self._features.shape[1]]
        )
        if not channels_first:
            return result
        last = result.dim() - 1
        return result.permute(0, last, *range(1, last)).contiguous()

    def __add__(self, other: SparseConvTensor | Tensor) -> SparseConvTensor:
        """Adds rows; the voxels must be the same."""
        return self.replace_feature(self._features + getattr(other, "features", other))

    __radd__ = __add__
    __iadd__ = __add__
