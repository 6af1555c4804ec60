"""Neighborhood attention by polyop's operator, and its two halves, with the weights between them, in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from polyop import functional

__all__ = [
    "na1d", "na1d_av", "na1d_qk", "na2d", "na2d_av", "na2d_qk", "na3d", "na3d_av", "na3d_qk", "natten1dav", "natten1dqk",
    "natten1dqkrpb", "natten2dav", "natten2dqk", "natten2dqkrpb", "natten3dav", "natten3dqk", "natten3dqkrpb",
]  # fmt: skip

Numbers = int | Sequence[int]
_UNUSED = {"backend", "torch_compile", "attention_kwargs", "run_persistent_kernel", "kernel_schedule"}


def _each(values: Numbers, axes: int) -> list[int]:
    return [int(v) for v in values] if isinstance(values, Sequence) else [int(values)] * axes


def _attention(
    axes: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    kernel_size: Numbers,
    stride: Numbers = 1,
    dilation: Numbers = 1,
    is_causal: bool | Sequence[bool] | None = False,
    scale: float | None = None,
    additional_keys: Tensor | None = None,
    additional_values: Tensor | None = None,
    return_lse: bool = False,
    **options: Any,
) -> Tensor:
    """Tensors [N, …, heads, depth] -> [N, …, heads, depth of value].

    Keys may have fewer heads than queries. Options that select a kernel of natten have no effect.
    """
    name = f"na{axes}d"
    unknown = [o for o in options if o not in _UNUSED and not o.startswith(("q_tile", "kv_tile", "backward_"))]
    if unknown:
        raise TypeError(f"{name}: unexpected argument {unknown[0]!r}")
    if query.dim() != axes + 3:
        raise ValueError(f"{name}: query: expected {axes + 3} dimensions, got {list(query.shape)}")
    if any(s != 1 for s in _each(stride, axes)):
        raise ValueError(f"{name}: stride: expected 1, got {stride}")
    if additional_keys is not None or additional_values is not None:
        raise ValueError(f"{name}: additional_keys, additional_values: expected None")
    if return_lse:
        raise ValueError(f"{name}: return_lse: expected False")
    heads = query.shape[-2]
    key, value = (
        t if t.shape[-2] == heads else t.repeat_interleave(heads // max(t.shape[-2], 1), -2) for t in (key, value)
    )
    flags = _each(is_causal or 0, axes)
    return functional.neighborhood_attention(
        query, key, value, _each(kernel_size, axes), _each(dilation, axes), flags, scale or None
    )


def _windows(extent: int, kernel: int, dilation: int, causal: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Returns the positions of each window along an axis, and the number of each minus that of the query, in steps of
    the dilation: both [extent, kernel]. Positions below 0 do not exist."""
    position = torch.arange(extent, device=device)
    group, number = position % dilation, position // dilation
    if causal:
        first = number - (kernel - 1)
    else:
        size = (extent - group + dilation - 1) // dilation
        first = torch.minimum((number - kernel // 2).clamp(min=0), size - kernel)
    members = first[:, None] + torch.arange(kernel, device=device)
    at = torch.where(members < 0, -1, members * dilation + group[:, None])
    return at, members - number[:, None]


def _index(
    name: str, extents: Sequence[int], kernel_size: Numbers, dilation: Numbers, is_causal: Numbers, device: torch.device
) -> tuple[Tensor, list[Tensor]]:
    """Returns the index of the positions of each window, [positions, window], -1 where there is none, and for each axis
    the relative numbers, of shapes that broadcast to it."""
    axes = len(extents)
    result = torch.zeros(1, 1, dtype=torch.int64, device=device)
    relative = []
    of_axes = (_each(values, axes) for values in (kernel_size, dilation, is_causal))
    for extent, kernel, step, causal in zip(extents, *of_axes, strict=True):
        if kernel * step > extent:
            raise ValueError(f"{name}: kernel_size * dilation: expected at most {extent}, got {kernel * step}")
        at, distance = _windows(extent, kernel, step, causal, device)
        joined = result[:, None, :, None] * extent + at[None, :, None]
        joined = torch.where((result[:, None, :, None] < 0) | (at[None, :, None] < 0), -1, joined)
        ones = torch.ones_like(result)
        relative = [
            (r[:, None, :, None] * torch.ones_like(at)[None, :, None]).flatten(2).flatten(0, 1) for r in relative
        ]
        relative.append((ones[:, None, :, None] * distance[None, :, None]).flatten(2).flatten(0, 1))
        result = joined.flatten(2).flatten(0, 1)
    return result, relative


def _products(
    axes: int,
    query: Tensor,
    key: Tensor,
    kernel_size: Numbers,
    dilation: Numbers = 1,
    additional_keys: Tensor | None = None,
    is_causal: Numbers = False,
    rpb: Tensor | None = None,
) -> Tensor:
    """Queries and keys [N, heads, …, depth] -> their products [N, heads, …, positions of a window], with the relative
    biases `rpb` [heads, 2 * kernel_size - 1, …]."""
    name = f"na{axes}d_qk"
    if additional_keys is not None:
        raise ValueError(f"{name}: additional_keys: expected None")
    if query.dim() != axes + 3:
        raise ValueError(f"{name}: query: expected {axes + 3} dimensions, got {list(query.shape)}")
    extents = query.shape[2:-1]
    index, relative = _index(name, extents, kernel_size, dilation, is_causal, query.device)
    keys = key.flatten(2, axes + 1)[:, :, index.clamp(min=0)]
    products = (query.flatten(2, axes + 1)[:, :, :, None] * keys).sum(-1)
    if rpb is not None:
        offsets = [r + kernel - 1 for r, kernel in zip(relative, _each(kernel_size, axes), strict=True)]
        products = products + rpb[(slice(None), *offsets)]
    products = products.masked_fill(index < 0, -torch.inf)
    return products.unflatten(2, extents)


def _sums(
    axes: int,
    attn: Tensor,
    value: Tensor,
    kernel_size: Numbers,
    dilation: Numbers = 1,
    additional_values: Tensor | None = None,
    is_causal: Numbers = False,
) -> Tensor:
    """Weights [N, heads, …, positions of a window] and values [N, heads, …, depth] -> [N, heads, …, depth]."""
    name = f"na{axes}d_av"
    if additional_values is not None:
        raise ValueError(f"{name}: additional_values: expected None")
    if value.dim() != axes + 3:
        raise ValueError(f"{name}: value: expected {axes + 3} dimensions, got {list(value.shape)}")
    extents = value.shape[2:-1]
    index, _ = _index(name, extents, kernel_size, dilation, is_causal, value.device)
    values = value.flatten(2, axes + 1)[:, :, index.clamp(min=0)]
    weights = attn.flatten(2, axes + 1).masked_fill(index < 0, 0)
    return (weights[..., None] * values).sum(3).unflatten(2, extents)


def _with_biases(
    axes: int,
    query: Tensor,
    key: Tensor,
    rpb: Tensor | None,
    kernel_size: Numbers,
    dilation: Numbers = 1,
    additional_keys: Tensor | None = None,
    is_causal: Numbers = False,
) -> Tensor:
    return _products(axes, query, key, kernel_size, dilation, additional_keys, is_causal, rpb)


def _of(axes: int, name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    result = partial(function, axes)
    result.__name__ = name  # type: ignore[attr-defined]
    result.__doc__ = function.__doc__
    return result


na1d, na2d, na3d = (_of(axes, f"na{axes}d", _attention) for axes in (1, 2, 3))
na1d_qk, na2d_qk, na3d_qk = (_of(axes, f"na{axes}d_qk", _products) for axes in (1, 2, 3))
na1d_av, na2d_av, na3d_av = (_of(axes, f"na{axes}d_av", _sums) for axes in (1, 2, 3))
natten1dqk, natten2dqk, natten3dqk = na1d_qk, na2d_qk, na3d_qk
natten1dav, natten2dav, natten3dav = na1d_av, na2d_av, na3d_av
natten1dqkrpb, natten2dqkrpb, natten3dqkrpb = (_of(axes, f"natten{axes}dqkrpb", _with_biases) for axes in (1, 2, 3))
