# SPDX-License-Identifier: Apache-2.0
"""`spconv.pytorch.modules`: the base class of layers, and sequences."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from polyop.compat.spconv.pytorch.core import SparseConvTensor

__all__ = [
    "SparseBatchNorm", "SparseIdentity", "SparseModule", "SparseReLU", "SparseSequential", "SparseSyncBatchNorm",
    "assign_name_for_sparse_modules", "is_sparse_conv", "is_spconv_module",
]  # fmt: skip


class SparseModule(nn.Module):
    """A layer on SparseConvTensors: SparseSequential passes it the tensor, not the features."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        self.name = name
        self._sparse_unique_name = ""


class Convolution(SparseModule):
    """The base class of convolutions, by which `is_sparse_conv` knows them."""


class SparseSequential(SparseModule):
    """A sequence of layers. Layers that are not sparse get the features."""

    def __init__(self, *args: Any, **kwargs: nn.Module) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named = list(args[0].items())
        else:
            named = [(str(i), layer) for i, layer in enumerate(args)]
        for name, layer in [*named, *kwargs.items()]:
            if name in self._modules:
                raise ValueError(f"SparseSequential: expected different names, got '{name}' twice")
            self.add_module(name, layer)

    def __getitem__(self, idx: int) -> nn.Module:
        return list(self._modules.values())[idx]

    def __len__(self) -> int:
        return len(self._modules)

    def add(self, module: nn.Module, name: str | None = None) -> None:
        self.add_module(str(len(self._modules)) if name is None else name, module)

    def forward(self, input: Any) -> Any:
        for layer in self._modules.values():
            if is_spconv_module(layer) or not isinstance(input, SparseConvTensor):
                input = layer(input)
            elif torch.compiler.is_compiling() or input.indices.shape[0] != 0:  # normalisations refuse no rows
                input = input.replace_feature(layer(input.features))
        return input


class _OnFeatures:
    """Applies a layer of torch to the features of a SparseConvTensor, or to a tensor."""

    def forward(self, input: Any) -> Any:
        if isinstance(input, SparseConvTensor):
            return input.replace_feature(super().forward(input.features))
        return super().forward(input)


class SparseBatchNorm(_OnFeatures, nn.BatchNorm1d):
    """nn.BatchNorm1d of the features."""


class SparseSyncBatchNorm(_OnFeatures, nn.SyncBatchNorm):
    """nn.SyncBatchNorm of the features."""


class SparseReLU(_OnFeatures, nn.ReLU):
    """nn.ReLU of the features."""


class SparseIdentity(_OnFeatures, nn.Identity):
    """nn.Identity of the features."""


def is_spconv_module(module: object) -> bool:
    return isinstance(module, (SparseModule, _OnFeatures))


def is_sparse_conv(module: object) -> bool:
    return isinstance(module, Convolution)


def assign_name_for_sparse_modules(module: nn.Module) -> None:
    for name, layer in module.named_modules():
        if isinstance(layer, SparseModule):
            layer._sparse_unique_name = name
