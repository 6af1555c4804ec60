# SPDX-License-Identifier: Apache-2.0
"""Sparse convolutions: tensors of voxels and layers on them, with spconv's names and arguments.

A layer computes its pairs of input and output rows once per `indice_key`, then multiplies with polyop's operators. Both
of torch.onnx.export's exporters write these as the nodes autoware::GetIndicePairsImplicitGemm and
autoware::ImplicitGemm. Weights have the shape of spconv 2: [out_channels, *kernel_size, in_channels]. 2-D layers are
3-D layers on a grid of depth 1.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn

from polyop import functional

__all__ = [
    "IndicePairs",
    "SparseConv2d",
    "SparseConv3d",
    "SparseConvTensor",
    "SparseConvTranspose3d",
    "SparseInverseConv3d",
    "SparseMaxPool2d",
    "SparseMaxPool3d",
    "SparseModule",
    "SparseSequential",
    "SubMConv2d",
    "SubMConv3d",
]

_WORD = 32  # offsets per word of a mask


def _each(value: int | Sequence[int], dimensions: int) -> tuple[int, ...]:
    """Returns a number per dimension, leading dimensions first."""
    values = (value,) * dimensions if isinstance(value, int) else tuple(value)
    if len(values) != dimensions:
        raise ValueError(f"expected {dimensions} numbers, got {len(values)}: {values}")
    return values


def _in_three(values: Sequence[int], filler: int) -> list[int]:
    return [filler] * (3 - len(values)) + list(values)


@dataclass(frozen=True)
class Filter:
    """The parameters that determine which voxels a layer joins, with the layer's number of dimensions."""

    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    output_padding: tuple[int, ...]
    subm: bool
    transposed: bool

    def output_shape(self, shape: Sequence[int]) -> list[int]:
        if self.subm:
            return list(shape)
        parts = zip(shape, self.kernel_size, self.stride, self.padding, self.dilation, self.output_padding, strict=True)
        if self.transposed:
            return [(n - 1) * s - 2 * p + k + o for n, k, s, p, _, o in parts]
        return [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d, _ in parts]


@dataclass(frozen=True)
class IndicePairs:
    """The pairs of input and output rows of a layer, which an indice_key identifies."""

    filter: Filter
    in_indices: Tensor
    in_shape: list[int]
    out_indices: Tensor
    out_shape: list[int]
    pair_fwd: Tensor
    pair_mask: Tensor
    mask_argsort: Tensor

    @staticmethod
    def find(x: SparseConvTensor, filter: Filter) -> IndicePairs:
        dimensions = len(x.spatial_shape)
        indices = x.indices
        if dimensions < 3:
            zeros = [torch.zeros_like(indices[:, :1])] * (3 - dimensions)
            indices = torch.cat([indices[:, :1], *zeros, indices[:, 1:]], 1)
        cells, pairs, mask, order, _ = torch.ops.polyop.get_indice_pairs_implicit_gemm(
            indices.contiguous(), batch_size=x.batch_size, spatial_shape=_in_three(x.spatial_shape, 1),
            ksize=_in_three(filter.kernel_size, 1), stride=_in_three(filter.stride, 1),
            padding=_in_three(filter.padding, 0), dilation=_in_three(filter.dilation, 1),
            out_padding=_in_three(filter.output_padding, 0), subm=int(filter.subm), transpose=int(filter.transposed),
        )  # fmt: skip
        if filter.subm:
            if torch.compiler.is_compiling():  # the compiler creates its own size for the operator's outputs
                torch._check(pairs.shape[1] == x.indices.shape[0])
            out = x.indices
        else:
            out = cells if dimensions == 3 else torch.cat([cells[:, :1], cells[:, 4 - dimensions :]], 1)
        shape = filter.output_shape(x.spatial_shape)
        return IndicePairs(filter, x.indices, x.spatial_shape, out, shape, pairs, mask, order)

    def inverse(self) -> IndicePairs:
        """Returns the pairs from the outputs back to the inputs, at the same positions of the filter."""
        offsets, count = self.pair_fwd.shape[0], self.in_indices.shape[0]
        target = torch.where(self.pair_fwd < 0, count, self.pair_fwd).long()
        source = torch.arange(self.pair_fwd.shape[1], device=target.device, dtype=torch.int32)
        pairs = torch.full((offsets, count + 1), -1, device=target.device, dtype=torch.int32)
        pairs = pairs.scatter(1, target, source.expand(offsets, -1))[:, :count].contiguous()
        words = -(-offsets // _WORD)
        present = nn.functional.pad((pairs >= 0).long(), (0, 0, 0, words * _WORD - offsets))
        bits = 1 << torch.arange(_WORD, device=pairs.device)
        mask = (present.view(words, _WORD, count) * bits[:, None]).sum(1).T.to(torch.int32).contiguous()
        order = torch.arange(count, device=pairs.device, dtype=torch.int32)
        return IndicePairs(
            self.filter, self.out_indices, self.out_shape, self.in_indices, self.in_shape, pairs, mask, order
        )

    def convolve(self, features: Tensor, filters: Tensor, bias: Tensor | None) -> Tensor:
        """features [N, C], filters [K, *kernel_size, C] -> [O, K]."""
        while filters.dim() < 5:
            filters = filters.unsqueeze(1)
        return functional.implicit_gemm(
            features, filters, self.pair_fwd, self.pair_mask, self.mask_argsort, bias, is_subm=self.filter.subm
        )

    def _sources(self, features: Tensor, filler: float) -> Iterator[Tensor]:
        """Yields the rows that each position of the filter reads, [O, C]; rows of `filler` where there is no voxel."""
        rows = torch.where(self.pair_fwd < 0, features.shape[0], self.pair_fwd).long()
        padded = nn.functional.pad(features, (0, 0, 0, 1), value=filler)
        for offset in range(rows.shape[0]):
            yield padded[rows[offset]]

    def maximum(self, features: Tensor) -> Tensor:
        """Returns the maximum over existing voxels, [O, C]."""
        sources = self._sources(features, -math.inf)
        greatest = next(sources)
        for source in sources:
            greatest = torch.maximum(greatest, source)
        return greatest

    def mean(self, features: Tensor) -> Tensor:
        """Returns the mean of existing voxels, [O, C]."""
        sources = self._sources(features, 0)
        total = next(sources)
        for source in sources:
            total = total + source
        return total / (self.pair_fwd >= 0).sum(0)[:, None].to(features.dtype)


@dataclass(frozen=True, init=False)
class SparseConvTensor:
    """`spconv.SparseConvTensor`: features [N, C] of voxels whose indices [N, 1 + D] are (batch, *position)."""

    features: Tensor
    indices: Tensor
    spatial_shape: list[int]
    batch_size: int
    indice_dict: dict[str, IndicePairs]

    def __init__(
        self,
        features: Tensor,
        indices: Tensor,
        spatial_shape: Sequence[int],
        batch_size: int,
        indice_dict: dict[str, IndicePairs] | None = None,
    ) -> None:
        if len(spatial_shape) not in (2, 3):
            raise ValueError(f"spatial_shape: expected 2 or 3 dimensions, got {list(spatial_shape)}")
        if indices.dim() != 2 or indices.shape[1] != len(spatial_shape) + 1:
            raise ValueError(f"indices: expected shape [N, {len(spatial_shape) + 1}], got {tuple(indices.shape)}")
        values = {
            "features": features,
            "indices": indices,
            "spatial_shape": [int(n) for n in spatial_shape],
            "batch_size": int(batch_size),
            "indice_dict": {} if indice_dict is None else indice_dict,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_dense(cls, x: Tensor) -> SparseConvTensor:
        """Returns the voxels of x [B, *spatial_shape, C] with any nonzero feature."""
        indices = x.abs().sum(-1).nonzero()
        return cls(x[tuple(indices.T)], indices.int(), x.shape[1:-1], x.shape[0])

    def replace_feature(self, features: Tensor) -> SparseConvTensor:
        return replace(self, features=features)

    def find_indice_pair(self, key: str | None) -> IndicePairs | None:
        return None if key is None else self.indice_dict.get(key)

    def dense(self, channels_first: bool = True) -> Tensor:
        """Returns the dense tensor [B, C, *spatial_shape], 0 without voxels."""
        empty = self.features.new_zeros(self.batch_size, *self.spatial_shape, self.features.shape[1])
        result = empty.index_put(tuple(self.indices.long().unbind(1)), self.features)
        if not channels_first:
            return result
        last = result.dim() - 1
        return result.permute(
            0, last, *range(1, last)
        ).contiguous()  # exporters do not support negative dimensions here


class SparseModule(nn.Module):
    """A layer on SparseConvTensors: SparseSequential passes it the tensor, not the features."""


class SparseSequential(SparseModule):
    """`spconv.SparseSequential`: a sequence of layers. Layers that are not sparse get the features."""

    def __init__(self, *layers: nn.Module | OrderedDict[str, nn.Module], **named: nn.Module) -> None:
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], OrderedDict):
            named = {**layers[0], **named}
        else:
            named = {**{str(i): cast("nn.Module", layer) for i, layer in enumerate(layers)}, **named}
        for name, layer in named.items():
            self.add_module(name, layer)

    def _layers(self) -> list[nn.Module]:
        """Returns the layers in order. Unlike `children()`, repeats a layer that occurs several times."""
        return [layer for layer in self._modules.values() if layer is not None]

    def __getitem__(self, i: int) -> nn.Module:
        return self._layers()[i]

    def __len__(self) -> int:
        return len(self._modules)

    def forward(self, x: SparseConvTensor | Tensor) -> SparseConvTensor | Tensor:
        for layer in self._layers():
            if isinstance(x, SparseConvTensor) and not isinstance(layer, SparseModule):
                x = x.replace_feature(layer(x.features))
            else:
                x = layer(x)
        return x


class _Paired(SparseModule):
    """A layer that joins voxels by a filter."""

    def __init__(self, filter: Filter, indice_key: str | None) -> None:
        super().__init__()
        self.filter, self.indice_key = filter, indice_key
        self.kernel_size, self.stride, self.padding = filter.kernel_size, filter.stride, filter.padding
        self.dilation, self.subm, self.transposed = filter.dilation, filter.subm, filter.transposed

    def _pairs(self, x: SparseConvTensor) -> IndicePairs:
        if len(x.spatial_shape) != len(self.kernel_size):
            raise ValueError(f"expected voxels with {len(self.kernel_size)} dimensions, got {len(x.spatial_shape)}")
        known = x.find_indice_pair(self.indice_key)
        if known is None:
            known = IndicePairs.find(x, self.filter)
            if self.indice_key is not None:
                x.indice_dict[self.indice_key] = known
        elif known.filter != self.filter or known.in_shape != x.spatial_shape:
            raise ValueError(f"indice_key '{self.indice_key}': expected {self.filter}, got {known.filter}")
        return known

    @staticmethod
    def _output(x: SparseConvTensor, pairs: IndicePairs, features: Tensor) -> SparseConvTensor:
        return SparseConvTensor(features, pairs.out_indices, pairs.out_shape, x.batch_size, x.indice_dict)


class _SparseConv(_Paired):
    def __init__(self, in_channels: int, out_channels: int, filter: Filter, bias: bool, indice_key: str | None) -> None:
        super().__init__(filter, indice_key)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.weight = nn.Parameter(torch.empty(self._weight_shape()))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        return (self.out_channels, *self.kernel_size, self.in_channels)

    def _filters(self) -> Tensor:
        """[out_channels, *kernel_size, in_channels]."""
        return self.weight

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.in_channels * math.prod(self.kernel_size))
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: SparseConvTensor) -> SparseConvTensor:
        pairs = self._pairs(x)
        return self._output(x, pairs, pairs.convolve(x.features, self._filters(), self.bias))

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}, dilation={self.dilation}, bias={self.bias is not None}, "
            f"indice_key={self.indice_key!r}"
        )


class _Convolution(_SparseConv):
    """The base class of convolutions with their own parameters."""

    _dimensions, _subm, _transposed = 3, False, False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        indice_key: str | None = None,
        *,
        output_padding: int | Sequence[int] = 0,
    ) -> None:
        if groups != 1:
            raise ValueError(f"groups: expected 1, got {groups}")
        given = (kernel_size, stride, padding, dilation, output_padding)
        sizes = [_each(value, self._dimensions) for value in given]
        if self._subm and any(k % 2 == 0 for k in sizes[0]):
            raise ValueError(f"kernel_size: expected odd numbers for a submanifold convolution, got {sizes[0]}")
        if self._subm:  # the arguments are ignored
            sizes[1], sizes[4] = (1,) * self._dimensions, (0,) * self._dimensions
            sizes[2] = tuple(k // 2 * d for k, d in zip(sizes[0], sizes[3], strict=True))
        kernel, steps, pads, dilations, extra = sizes
        filter = Filter(kernel, steps, pads, dilations, extra, self._subm, self._transposed)
        super().__init__(in_channels, out_channels, filter, bias, indice_key)


class SubMConv3d(_Convolution):
    """`spconv.SubMConv3d`, submanifold: the outputs are at the inputs' voxels. Stride and padding are ignored."""

    _subm = True


class SparseConv3d(_Convolution):
    """`spconv.SparseConv3d`: an output wherever the filter covers a voxel, sorted by (batch, z, y, x)."""


class SparseConvTranspose3d(_Convolution):
    """`spconv.SparseConvTranspose3d`."""

    _transposed = True


class SubMConv2d(SubMConv3d):
    """`spconv.SubMConv2d`."""

    _dimensions = 2


class SparseConv2d(SparseConv3d):
    """`spconv.SparseConv2d`."""

    _dimensions = 2


class SparseInverseConv3d(_SparseConv):
    """`spconv.SparseInverseConv3d`: from the outputs of the convolution of the same indice_key back to its inputs."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], indice_key: str, bias: bool = True
    ) -> None:
        size = _each(kernel_size, 3)
        none, one = (0, 0, 0), (1, 1, 1)
        super().__init__(in_channels, out_channels, Filter(size, one, none, one, none, False, False), bias, indice_key)

    def _pairs(self, x: SparseConvTensor) -> IndicePairs:
        known = x.find_indice_pair(self.indice_key)
        if known is None:
            raise ValueError(f"indice_key: expected one of an earlier layer, got '{self.indice_key}'")
        if known.filter.kernel_size != self.kernel_size:
            raise ValueError(
                f"indice_key '{self.indice_key}': expected kernel_size {self.kernel_size}, got {known.filter.kernel_size}"
            )
        return known.inverse()


class SparseMaxPool3d(_Paired):
    """`spconv.SparseMaxPool3d`: the maximum over existing voxels. The default stride is the kernel's size."""

    _dimensions = 3

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        indice_key: str | None = None,
    ) -> None:
        given = (kernel_size, kernel_size if stride is None else stride, padding, dilation, 0)
        kernel, steps, pads, dilations, extra = (_each(value, self._dimensions) for value in given)
        super().__init__(Filter(kernel, steps, pads, dilations, extra, False, False), indice_key)

    def forward(self, x: SparseConvTensor) -> SparseConvTensor:
        pairs = self._pairs(x)
        return self._output(x, pairs, pairs.maximum(x.features))

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}"


class SparseMaxPool2d(SparseMaxPool3d):
    """`spconv.SparseMaxPool2d`."""

    _dimensions = 2
