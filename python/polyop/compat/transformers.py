# SPDX-License-Identifier: Apache-2.0
"""Replaces the deformable attention of Hugging Face transformers' detectors, and the scans and causal convolutions of
its state space models, by polyop's, for example before an export.

from polyop.compat.transformers import use_polyop

use_polyop(model)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from inspect import unwrap
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn

from polyop import functional
from polyop.compat.causal_conv1d.causal_conv1d_interface import causal_conv1d_fn, causal_conv1d_update
from polyop.compat.mamba_ssm.ops.selective_scan_interface import mamba_inner_fn, selective_scan_fn
from polyop.compat.mamba_ssm.ops.triton.selective_state_update import selective_state_update
from polyop.compat.mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined

__all__ = ["MultiScaleDeformableAttention", "use_polyop"]

# Names of the layer in Deformable DETR, RT-DETR, Grounding DINO, …; all have the arguments of forward() below.
_LAYER = "MultiScaleDeformableAttention"


class MultiScaleDeformableAttention(nn.Module):
    """The layer of transformers' detectors, by polyop. It is stateless, as the package `kernels` requires."""

    has_backward = True
    can_torch_compile = True

    def forward(
        self,
        value: Tensor,
        value_spatial_shapes: Tensor,
        value_spatial_shapes_list: list[tuple[int, int]],
        level_start_index: Tensor,
        sampling_locations: Tensor,
        attention_weights: Tensor,
        im2col_step: int,
    ) -> Tensor:
        del value_spatial_shapes_list, im2col_step
        return functional.ms_deform_attn(
            value, value_spatial_shapes, level_start_index, sampling_locations, attention_weights
        )


def _levels(value: Tensor, spatial_shapes: Tensor | Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Returns the sizes of levels [L, 2] and their start indices [L]."""
    shapes = torch.as_tensor(spatial_shapes, dtype=torch.int64, device=value.device)
    sizes = shapes[:, 0] * shapes[:, 1]
    return shapes, sizes.cumsum(0) - sizes


def _attention(
    value: Tensor,
    value_spatial_shapes: Tensor | Sequence[Sequence[int]],
    sampling_locations: Tensor,
    attention_weights: Tensor,
) -> Tensor:
    """Replaces the function of Mask2Former and OneFormer."""
    levels = _levels(value, value_spatial_shapes)
    return functional.ms_deform_attn(
        value.contiguous(), *levels, sampling_locations.to(value), attention_weights.to(value)
    )


def _attention_v2(
    value: Tensor,
    value_spatial_shapes: Tensor | Sequence[Sequence[int]],
    sampling_locations: Tensor,
    attention_weights: Tensor,
    num_points_list: list[int],
    method: str = "default",
) -> Tensor:
    """Replaces the function of RT-DETRv2, D-FINE and DEIMv2: num_points_list has the points per level, of [N, Q, M,
    all, 2].

    The operator has the same number of points for all levels: a level with more points is repeated. Method "discrete"
    takes the nearest pixel, also for samples outside the image: its samples are at pixel centres.
    """
    if method not in ("default", "discrete"):
        raise ValueError(f"method: expected 'default' or 'discrete', got '{method}'")
    shapes, starts = _levels(value, value_spatial_shapes)
    if method == "discrete":
        points = torch.tensor(num_points_list, device=value.device)
        size = shapes.flip(1).repeat_interleave(points, 0).to(sampling_locations.dtype)
        pixel = torch.floor(sampling_locations * size + 0.5).clamp(min=torch.zeros_like(size), max=size - 1)
        sampling_locations = (pixel + 0.5) / size
    together = math.gcd(*num_points_list)
    times = torch.tensor([n // together for n in num_points_list], device=value.device)
    return functional.ms_deform_attn(
        value.contiguous(),
        shapes.repeat_interleave(times, 0),
        starts.repeat_interleave(times, 0),
        sampling_locations.unflatten(3, (-1, together)).to(value),
        attention_weights.unflatten(3, (-1, together)).to(value),
    )


def _without_options(function: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """Returns the function with these arguments, which select an implementation of transformers, ignored."""

    def call(*args: Any, **given: Any) -> Any:
        return function(*args, **{name: value for name, value in given.items() if name not in names})

    return call


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "causal_conv1d_fn": causal_conv1d_fn,
    "causal_conv1d_update": causal_conv1d_update,
    "mamba2_chunk_scan": mamba_chunk_scan_combined,
    "mamba2_selective_state_update": selective_state_update,
    "mamba_inner_fn": mamba_inner_fn,
    "mamba_selective_scan": _without_options(selective_scan_fn, "use_mambapy", "use_associative_scan"),
    "mamba_selective_state_update": selective_state_update,
    "multi_scale_deformable_attention": _attention,
    "multi_scale_deformable_attention_v2": _attention_v2,
}


def _of_transformers(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).startswith("transformers.")


def _replace_functions(layer: nn.Module) -> int:
    """Makes a layer call polyop's functions, whether the layer stores a function or uses its module's.

    Returns their number.
    """
    kept = [
        (name, _FUNCTIONS[value.__name__])
        for name, value in vars(layer).items()
        if isinstance(value, FunctionType) and value.__name__ in _FUNCTIONS and _of_transformers(value)
    ]
    for name, function in kept:
        setattr(layer, name, function)
    forward = unwrap(type(layer).forward)
    found = {n: f for n, f in _FUNCTIONS.items() if n in forward.__code__.co_names and n in forward.__globals__}
    if found and "forward" not in vars(layer):
        ours = FunctionType(
            forward.__code__,
            {**forward.__globals__, **found},
            forward.__name__,
            forward.__defaults__,
            forward.__closure__,
        )
        ours.__kwdefaults__ = forward.__kwdefaults__
        layer.forward = MethodType(ours, layer)
        return len(kept) + 1
    return len(kept)


def use_polyop(model: nn.Module) -> int:
    """Replaces every deformable attention, and the functions of every Mamba layer, which have no weights, in this model
    only. Returns the number of layers.

    Raises ValueError if there is none.
    """
    modules = [m for m in model.modules() if _of_transformers(type(m))]
    layers = [
        (parent, name)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child).__name__ == _LAYER and _of_transformers(type(child))
    ]
    count = len(layers) + sum(_replace_functions(module) for module in modules)
    if not count:
        raise ValueError(
            f"expected a model with transformers' deformable attention or Mamba layers, got {type(model).__name__}"
        )
    for parent, name in layers:
        setattr(parent, name, MultiScaleDeformableAttention())
    return count
