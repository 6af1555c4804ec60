# SPDX-License-Identifier: Apache-2.0
"""`spconv.pytorch.conv`: convolutions. Weights have the shape [out_channels, *kernel_size, in_channels]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from polyop.compat.spconv import constants
from polyop.compat.spconv.core import ConvAlgo
from polyop.compat.spconv.pytorch.core import IndiceData, SparseConvTensor, expand_nd
from polyop.compat.spconv.pytorch.modules import Convolution, SparseModule
from polyop.sparse import Filter, IndicePairs

__all__ = [
    "SparseConv1d", "SparseConv2d", "SparseConv3d", "SparseConv4d", "SparseConvTranspose1d", "SparseConvTranspose2d",
    "SparseConvTranspose3d", "SparseConvTranspose4d", "SparseConvolution", "SparseInverseConv1d",
    "SparseInverseConv2d", "SparseInverseConv3d", "SparseInverseConv4d", "SubMConv1d", "SubMConv2d", "SubMConv3d",
    "SubMConv4d",
]  # fmt: skip

_MAX_NUM_VOXELS = "max_num_voxels_during_training"
_Sizes = int | Sequence[int]


class Paired(SparseModule):
    """A layer that joins voxels by a filter, and stores the pairs under its indice_key."""

    def __init__(
        self,
        ndim: int,
        kernel_size: _Sizes,
        stride: _Sizes,
        padding: _Sizes,
        dilation: _Sizes,
        output_padding: _Sizes,
        subm: bool,
        transposed: bool,
        indice_key: str | None,
        algo: ConvAlgo | None,
        max_positions: int,
        record_voxel_count: bool,
        name: str | None,
    ) -> None:
        super().__init__(name=name)
        if ndim not in (1, 2, 3):
            raise NotImplementedError(f"{type(self).__name__}: expected 1 to 3 dimensions, got {ndim}")
        self.ndim, self.subm, self.transposed, self.indice_key = ndim, subm, transposed, indice_key
        sizes = [expand_nd(ndim, value) for value in (kernel_size, stride, padding, dilation, output_padding)]
        self.kernel_size, self.stride, self.padding, self.dilation, self.output_padding = sizes
        positions = math.prod(self.kernel_size)
        self.algo = algo or (ConvAlgo.MaskImplicitGemm if positions <= max_positions else ConvAlgo.Native)
        self.record_voxel_count = record_voxel_count and not subm
        if self.record_voxel_count:
            self.register_buffer(_MAX_NUM_VOXELS, torch.zeros(1, dtype=torch.int32))

    def get_max_num_voxels(self) -> Tensor | None:
        """Returns the largest number of outputs so far, if `record_voxel_count` is True."""
        return getattr(self, _MAX_NUM_VOXELS, None)

    def _filter(self) -> Filter:
        kernel, dilation = tuple(self.kernel_size), tuple(self.dilation)
        none, one = (0,) * self.ndim, (1,) * self.ndim
        if self.subm:  # stride and padding are ignored
            if any(k % 2 == 0 for k in kernel):
                raise ValueError(f"{type(self).__name__}: kernel_size: expected odd numbers, got {self.kernel_size}")
            padding = tuple(k // 2 * d for k, d in zip(kernel, dilation, strict=True))
            return Filter(kernel, one, padding, dilation, none, True, False)
        return Filter(
            kernel, tuple(self.stride), tuple(self.padding), dilation, tuple(self.output_padding), False,
            self.transposed,
        )  # fmt: skip

    def _check(self, input: Any) -> None:
        name = type(self).__name__
        if not isinstance(input, SparseConvTensor):
            raise ValueError(f"{name}: expected a SparseConvTensor, got {type(input).__name__}")
        if len(input.spatial_shape) != self.ndim:
            raise ValueError(f"{name}: expected voxels with {self.ndim} dimensions, got {len(input.spatial_shape)}")
        if input.is_quantized:
            raise NotImplementedError(f"{name}: quantized features are not supported")

    def _find(self, input: SparseConvTensor) -> IndiceData:
        """Returns the pairs. A submanifold convolution reuses those of its key."""
        known = input.find_indice_pair(self.indice_key)
        if known is None:
            return IndiceData(IndicePairs.find(input, self._filter()), self.algo)
        expected = (self.kernel_size, self.dilation, input.spatial_shape)
        if not self.subm or not known.is_subm:
            raise ValueError(
                f"{type(self).__name__}: indice_key '{self.indice_key}': expected a new key, got one of an earlier "
                "layer; only submanifold convolutions share pairs"
            )
        got = (known.ksize, known.dilation, known.spatial_shape)
        if expected != got:
            raise ValueError(
                f"{type(self).__name__}: indice_key '{self.indice_key}': expected a layer of kernel_size, dilation and "
                f"spatial_shape {expected}, got {got}"
            )
        if not torch.compiler.is_compiling() and len(known.indices) != len(input.indices):
            raise ValueError(
                f"{type(self).__name__}: indice_key '{self.indice_key}': expected {len(known.indices)} voxels, "
                f"got {len(input.indices)}"
            )
        return known

    def _output(self, input: SparseConvTensor, data: IndiceData, features: Tensor) -> SparseConvTensor:
        """The pairs of a key belong to the outputs, as in spconv: other layers of the input do not see them."""
        output = input.replace_feature(features)
        output.indices, output.spatial_shape = data.out_indices, data.out_spatial_shape
        if self.indice_key is not None and self.indice_key not in input.indice_dict:
            output.indice_dict = {**input.indice_dict, self.indice_key: data}
        if self.record_voxel_count:
            getattr(self, _MAX_NUM_VOXELS).clamp_(min=features.shape[0])
        return output


class SparseConvolution(Paired, Convolution):
    """All convolutions."""

    def __init__(
        self,
        ndim: int,
        in_channels: int,
        out_channels: int,
        kernel_size: _Sizes = 3,
        stride: _Sizes = 1,
        padding: _Sizes = 0,
        dilation: _Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        subm: bool = False,
        output_padding: _Sizes = 0,
        transposed: bool = False,
        inverse: bool = False,
        indice_key: str | None = None,
        algo: ConvAlgo | None = None,
        fp32_accum: bool | None = None,
        record_voxel_count: bool = False,
        act_type: Any = None,
        act_alpha: float = 0,
        act_beta: float = 0,
        large_kernel_fast_algo: bool = False,
        name: str | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """`fp32_accum` has no effect: sums are always in f32 or more."""
        super().__init__(
            ndim, kernel_size, stride, padding, dilation, output_padding, subm, transposed, indice_key, algo,
            128 if large_kernel_fast_algo else 32, record_voxel_count and not inverse, name,
        )  # fmt: skip
        if groups != 1:
            raise ValueError(f"{type(self).__name__}: groups: expected 1, got {groups}")
        if inverse and indice_key is None:
            raise ValueError(f"{type(self).__name__}: indice_key: expected one of an earlier layer, got None")
        if str(act_type).rpartition(".")[2] not in ("None", "None_"):
            raise NotImplementedError(f"{type(self).__name__}: act_type: expected None, got {act_type}")
        del act_alpha, act_beta
        self.in_channels, self.out_channels, self.groups, self.inverse = in_channels, out_channels, groups, inverse
        self.fp32_accum = fp32_accum
        self.conv1x1 = math.prod(self.kernel_size) == 1 and (subm or math.prod(self.stride) == 1)
        if self.conv1x1 and not subm and any(self.padding):
            raise ValueError(f"{type(self).__name__}: padding: expected 0 for a kernel of 1, got {self.padding}")
        shape = (out_channels, *self.kernel_size, in_channels)
        self.weight = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(out_channels, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()
        self.register_load_state_dict_pre_hook(_load_other_layouts)

    def is_inverseable(self) -> bool:
        return self.indice_key is not None and not self.subm

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.in_channels * math.prod(self.kernel_size))
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, input: SparseConvTensor, add_input: SparseConvTensor | None = None) -> SparseConvTensor:
        """`add_input` is added to the result."""
        self._check(input)
        if input.features.shape[1] != self.in_channels:
            raise ValueError(
                f"{type(self).__name__}: expected {self.in_channels} channels, got {input.features.shape[1]}"
            )
        if self.conv1x1:
            output = self._multiply(input)
        else:
            data = self._find_inverse(input) if self.inverse else self._find(input)
            features = data.pairs.convolve(input.features, self.weight, self.bias)
            output = self._output(input, data, features)
        return output if add_input is None else output + add_input

    def _multiply(self, input: SparseConvTensor) -> SparseConvTensor:
        """spconv reads the weight [out_channels, 1, …, in_channels] of one position as [in_channels, out_channels], so
        that weights that were trained with it fit."""
        features = input.features @ self.weight.view(self.in_channels, self.out_channels)
        output = input.replace_feature(features if self.bias is None else features + self.bias)
        if not self.subm:
            output.spatial_shape = self._filter().output_shape(input.spatial_shape)
        return output

    def _find_inverse(self, input: SparseConvTensor) -> IndiceData:
        known = input.find_indice_pair(self.indice_key)
        name = f"{type(self).__name__}: indice_key '{self.indice_key}'"
        if known is None or known.is_subm:
            got = "none" if known is None else "a submanifold convolution"
            raise ValueError(f"{name}: expected an earlier convolution or pooling, got {got}")
        if known.ksize != self.kernel_size:
            raise ValueError(f"{name}: expected kernel_size {known.ksize}, got {self.kernel_size}")
        if known.out_spatial_shape != input.spatial_shape:
            raise ValueError(f"{name}: expected spatial_shape {known.out_spatial_shape}, got {input.spatial_shape}")
        if not torch.compiler.is_compiling() and len(known.out_indices) != len(input.indices):
            raise ValueError(f"{name}: expected {len(known.out_indices)} voxels, got {len(input.indices)}")
        return IndiceData(known.pairs.inverse(), known.algo)

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        parts += [f"{name}={getattr(self, name)}" for name in ("padding", "dilation", "output_padding")]
        if self.bias is None:
            parts.append("bias=False")
        return ", ".join([*parts, f"algo={self.algo}"])


def _load_other_layouts(module: SparseConvolution, state: dict[str, Tensor], prefix: str, *_: Any) -> None:
    """Converts weights of older versions, if SPCONV_SAVED_WEIGHT_LAYOUT names their layout."""
    if module.record_voxel_count:
        state.setdefault(prefix + _MAX_NUM_VOXELS, torch.zeros(1, dtype=torch.int32))
    key, axes = prefix + "weight", range(module.ndim)
    if key not in state:
        return
    if constants.SAVED_WEIGHT_LAYOUT == "RSKC":
        state[key] = state[key].permute(module.ndim, *axes, module.ndim + 1).contiguous()
    elif constants.SAVED_WEIGHT_LAYOUT == "RSCK":
        state[key] = state[key].permute(module.ndim + 1, *axes, module.ndim).contiguous()


class _Convolution(SparseConvolution):
    _dimensions, _subm, _transposed = 3, False, False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: _Sizes,
        stride: _Sizes = 1,
        padding: _Sizes = 0,
        dilation: _Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        indice_key: str | None = None,
        algo: ConvAlgo | None = None,
        fp32_accum: bool | None = None,
        record_voxel_count: bool = False,
        large_kernel_fast_algo: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            self._dimensions, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            subm=self._subm, transposed=self._transposed, indice_key=indice_key, algo=algo, fp32_accum=fp32_accum,
            record_voxel_count=record_voxel_count, large_kernel_fast_algo=large_kernel_fast_algo, name=name,
        )  # fmt: skip


class _SubMConvolution(SparseConvolution):
    """The outputs are at the inputs' voxels. Stride and padding are ignored."""

    _dimensions = 3

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: _Sizes,
        stride: _Sizes = 1,
        padding: _Sizes = 0,
        dilation: _Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        indice_key: str | None = None,
        algo: ConvAlgo | None = None,
        fp32_accum: bool | None = None,
        large_kernel_fast_algo: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            self._dimensions, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, True,
            indice_key=indice_key, algo=algo, fp32_accum=fp32_accum, large_kernel_fast_algo=large_kernel_fast_algo,
            name=name,
        )  # fmt: skip


class _InverseConvolution(SparseConvolution):
    """From the outputs of the convolution or pooling of the same indice_key back to its inputs."""

    _dimensions = 3

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: _Sizes,
        indice_key: str,
        bias: bool = True,
        algo: ConvAlgo | None = None,
        fp32_accum: bool | None = None,
        large_kernel_fast_algo: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            self._dimensions, in_channels, out_channels, kernel_size, bias=bias, inverse=True, indice_key=indice_key,
            algo=algo, fp32_accum=fp32_accum, large_kernel_fast_algo=large_kernel_fast_algo, name=name,
        )  # fmt: skip


class SubMConv1d(_SubMConvolution):
    _dimensions = 1


class SubMConv2d(_SubMConvolution):
    _dimensions = 2


class SubMConv3d(_SubMConvolution):
    _dimensions = 3


class SubMConv4d(_SubMConvolution):
    """Not available: its constructor raises NotImplementedError."""

    _dimensions = 4


class SparseConv1d(_Convolution):
    _dimensions = 1


class SparseConv2d(_Convolution):
    _dimensions = 2


class SparseConv3d(_Convolution):
    _dimensions = 3


class SparseConv4d(_Convolution):
    """Not available: its constructor raises NotImplementedError."""

    _dimensions = 4


class SparseConvTranspose1d(_Convolution):
    _dimensions, _transposed = 1, True


class SparseConvTranspose2d(_Convolution):
    _dimensions, _transposed = 2, True


class SparseConvTranspose3d(_Convolution):
    _dimensions, _transposed = 3, True


class SparseConvTranspose4d(_Convolution):
    """Not available: its constructor raises NotImplementedError."""

    _dimensions, _transposed = 4, True


class SparseInverseConv1d(_InverseConvolution):
    _dimensions = 1


class SparseInverseConv2d(_InverseConvolution):
    _dimensions = 2


class SparseInverseConv3d(_InverseConvolution):
    _dimensions = 3


class SparseInverseConv4d(_InverseConvolution):
    """Not available: its constructor raises NotImplementedError."""

    _dimensions = 4
