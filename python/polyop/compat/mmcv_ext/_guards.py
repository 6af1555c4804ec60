# SPDX-License-Identifier: Apache-2.0
"""Patches MMCV's Python code with polyop's kernels where it requires a CUDA device, has slow plain torch for CPUs, or
needs several steps; and with polyop's nodes where it exports another operator than it computes, or none (`_exported`).

A module of `mmcv.ops` is patched right after its execution, before anything imports a name from it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from polyop import functional
from polyop._base.after_import import after_import
from polyop.compat.mmcv_ext import features
from polyop.compat.mmcv_ext._exported import EXPORTED

__all__ = ["watch"]


def _furthest_point_sample(module: ModuleType) -> None:
    """MMCV always allocates on the GPU."""

    def forward(ctx: Any, points_xyz: Tensor, num_points: int) -> Tensor:
        chosen = functional.furthest_point_sample(points_xyz.contiguous(), num_points)
        ctx.mark_non_differentiable(chosen)
        return chosen

    module.FurthestPointSampling.forward = staticmethod(forward)


def _knn(module: ModuleType) -> None:
    def forward(ctx: Any, k: int, xyz: Tensor, center_xyz: Tensor | None = None, transposed: bool = False) -> Tensor:
        if not 0 < k < 100:
            raise ValueError(f"k: expected 1 to 99, got {k}")
        center = xyz if center_xyz is None else center_xyz
        nearest = functional.knn(k, xyz.contiguous(), center.contiguous(), transposed)
        ctx.mark_non_differentiable(nearest)
        return nearest

    module.KNN.forward = staticmethod(forward)


def _points_in_boxes(module: ModuleType) -> None:
    def points_in_boxes_part(points: Tensor, boxes: Tensor) -> Tensor:
        return functional.points_in_boxes_part(points.contiguous(), boxes.contiguous())

    def points_in_boxes_all(points: Tensor, boxes: Tensor) -> Tensor:
        return functional.points_in_boxes_all(points.contiguous(), boxes.contiguous())

    for function in (points_in_boxes_part, points_in_boxes_all):
        function.__doc__ = getattr(module, function.__name__).__doc__
        setattr(module, function.__name__, function)


def _carafe(module: ModuleType) -> None:
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        values, masks = ctx.saved_tensors
        result = torch.zeros_like(values), torch.zeros_like(masks)
        sizes = (ctx.kernel_size, ctx.group_size, ctx.scale_factor)
        features.carafe_naive_backward(grad_output.contiguous(), values, masks, *result, *sizes)
        return *result, None, None, None

    module.CARAFENaiveFunction.backward = staticmethod(backward)


def _deformable_attention(module: ModuleType) -> None:
    plain = module.multi_scale_deformable_attn_pytorch

    @wraps(plain)
    def multi_scale_deformable_attn_pytorch(
        value: Tensor, value_spatial_shapes: Tensor, sampling_locations: Tensor, attention_weights: Tensor
    ) -> Tensor:
        if value.device.type != "cpu":
            return plain(value, value_spatial_shapes, sampling_locations, attention_weights)
        shapes = torch.as_tensor(value_spatial_shapes)
        sizes = shapes.prod(1)
        starts = sizes.cumsum(0) - sizes
        return functional.ms_deform_attn(
            value.contiguous(),
            shapes,
            starts,
            sampling_locations.to(value).contiguous(),
            attention_weights.to(value).contiguous(),
        )

    module.multi_scale_deformable_attn_pytorch = multi_scale_deformable_attn_pytorch


def _masked_conv(module: ModuleType) -> None:
    """MMCV gathers, multiplies and scatters; polyop has one operator for it."""
    plain = module.MaskedConv2dFunction.forward

    def forward(
        ctx: Any, features: Tensor, mask: Tensor, weight: Tensor, bias: Tensor, padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> Tensor:  # fmt: skip
        pads = (padding, padding) if isinstance(padding, int) else tuple(padding)
        is_same = all(2 * pad == size - 1 for pad, size in zip(pads, weight.shape[2:], strict=True))
        if features.device.type != "cpu" or not is_same:
            return plain(ctx, features, mask, weight, bias, padding, stride)
        where = (mask > 0).contiguous()
        return functional.masked_conv2d(features.contiguous(), where, weight.contiguous(), bias, pads, stride)

    module.MaskedConv2dFunction.forward = staticmethod(forward)


_CHANGES: dict[str, Callable[[ModuleType], None]] = {
    "mmcv.ops.carafe": _carafe,
    "mmcv.ops.furthest_point_sample": _furthest_point_sample,
    "mmcv.ops.knn": _knn,
    "mmcv.ops.masked_conv": _masked_conv,
    "mmcv.ops.multi_scale_deform_attn": _deformable_attention,
    "mmcv.ops.points_in_boxes": _points_in_boxes,
    **EXPORTED,
}


def watch() -> None:
    """Patches the modules that are imported already, and those that are imported later."""
    after_import(_CHANGES)
    taken = vars(sys.modules.get("mmcv.ops", ModuleType("mmcv.ops")))
    for name in set(_CHANGES) & set(sys.modules):
        before = dict(vars(sys.modules[name]))
        _CHANGES[name](sys.modules[name])
        for attribute, value in vars(sys.modules[name]).items():  # names that mmcv.ops has imported from it
            if attribute in taken and taken[attribute] is before.get(attribute):
                taken[attribute] = value
