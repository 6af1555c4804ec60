# SPDX-License-Identifier: Apache-2.0
"""Neighborhood attention by polyop's operator, and its two halves, with the weights between them, in PyTorch.

The halves also serve what the operator lacks: strides, biases, additional keys and values, and the logarithm of the
sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from polyop import functional

__all__ = [
    "attention", "merge_attentions", "na1d", "na1d_av", "na1d_qk", "na1d_qk_with_bias", "na2d", "na2d_av", "na2d_qk",
    "na2d_qk_with_bias", "na3d", "na3d_av", "na3d_qk", "na3d_qk_with_bias", "natten1dav", "natten1dqk", "natten1dqkrpb",
    "natten2dav", "natten2dqk", "natten2dqkrpb", "natten3dav", "natten3dqk", "natten3dqkrpb",
    "neighborhood_attention_generic",
]  # fmt: skip

Numbers = int | Sequence[int]
_UNUSED = {
    "backend", "torch_compile", "attention_kwargs", "xformers_kwargs", "run_persistent_kernel", "kernel_schedule",
}  # fmt: skip


def each(values: Numbers | None, axes: int, default: int = 0) -> list[int]:
    values = default if values is None else values
    return [int(v) for v in values] if isinstance(values, Sequence) else [int(values)] * axes


def _check_options(name: str, options: dict[str, Any]) -> None:
    unknown = [o for o in options if o not in _UNUSED and not o.startswith(("q_tile", "kv_tile", "backward_"))]
    if unknown:
        raise TypeError(f"{name}: unexpected argument {unknown[0]!r}")


def _with_heads(heads: int, *tensors: Tensor) -> list[Tensor]:
    """Repeats the heads of keys and values, which may be fewer than those of queries."""
    return [t if t.shape[-2] == heads else t.repeat_interleave(heads // max(t.shape[-2], 1), -2) for t in tensors]


def _attention(
    axes: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    kernel_size: Numbers,
    stride: Numbers = 1,
    dilation: Numbers | None = 1,
    is_causal: bool | Sequence[bool] | None = False,
    scale: float | None = None,
    additional_keys: Tensor | None = None,
    additional_values: Tensor | None = None,
    return_lse: bool = False,
    rpb: Tensor | None = None,
    **options: Any,
) -> Tensor | tuple[Tensor, Tensor]:
    """Tensors [N, …, heads, depth] -> [N, …, heads, depth of value], and with return_lse the logarithm of the sums of
    the exponentials, [N, …, heads].

    Keys may have fewer heads than queries. All queries also see the additional keys [N, L, heads, depth] and values.
    `rpb` has the relative biases of natten 0.17. Options that select a kernel of natten have no effect.
    """
    name = f"na{axes}d"
    _check_options(name, options)
    if query.dim() != axes + 3:
        raise ValueError(f"{name}: query: expected {axes + 3} dimensions, got {list(query.shape)}")
    strides, sizes = each(stride, axes), each(kernel_size, axes)
    if any(not 1 <= s <= max(size, 1) for s, size in zip(strides, sizes, strict=True)):
        raise ValueError(
            f"{name}: stride: expected numbers from 1 to kernel_size = {kernel_size}, got {stride}; a dilation is passed "
            "by its name"
        )
    if (additional_keys is None) != (additional_values is None):
        raise ValueError(f"{name}: expected both additional_keys and additional_values, or neither")
    heads = query.shape[-2]
    key, value = _with_heads(heads, key, value)
    if additional_keys is None and rpb is None and not return_lse and max(strides) == 1:
        flags, steps = each(is_causal, axes), each(dilation, axes, 1)
        return functional.neighborhood_attention(query, key, value, sizes, steps, flags, scale or None)
    more = [None, None]
    if additional_keys is not None and additional_values is not None:
        more = [t.transpose(1, 2) for t in _with_heads(heads, additional_keys, additional_values)]
    query, key, value = (t.movedim(-2, 1) for t in (query, key, value))
    scaled = query * (scale or query.shape[-1] ** -0.5)
    products = _products(axes, scaled, key, kernel_size, dilation, more[0], is_causal, rpb, stride=strides)
    weights = products.softmax(-1)
    result = _sums(axes, weights, value, kernel_size, dilation, more[1], is_causal, stride=strides).movedim(1, -2)
    return (result, products.float().logsumexp(-1).movedim(1, -1)) if return_lse else result


def attention(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None, *positional: Any, return_lse: bool = False,
    **options: Any,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """Attention of all queries [N, Q, heads, depth] to all keys and values [N, L, heads, …], as `na1d`."""
    del positional  # which select a kernel of natten
    _check_options("attention", options)
    key, value = _with_heads(query.shape[-2], key, value)
    q, k, v = (t.transpose(1, 2) for t in (query, key, value))
    if not return_lse:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=scale).transpose(1, 2)
    products = q @ k.mT * (scale or q.shape[-1] ** -0.5)
    return (products.softmax(-1) @ v).transpose(1, 2), products.float().logsumexp(-1).transpose(1, 2)


def merge_attentions(outputs: Sequence[Tensor], lse_tensors: Sequence[Tensor], torch_compile: bool = True) -> Tensor:
    """Merges attentions [N, Q, heads, depth] of the same queries to different keys, by the logarithms of their sums [N,
    Q, heads]."""
    del torch_compile
    if len(outputs) != len(lse_tensors) or len(outputs) < 2:
        raise ValueError(f"merge_attentions: expected 2 or more outputs with as many lse_tensors, got {len(outputs)}")
    weights = torch.stack([lse.float() for lse in lse_tensors]).softmax(0)[..., None]
    return (torch.stack([o.float() for o in outputs]) * weights).sum(0).to(outputs[0].dtype)


def _windows(
    extent: int, kernel: int, dilation: int, causal: int, stride: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Returns the positions of each window along an axis, and the number of each minus that of the query, in steps of
    the dilation: both [extent, kernel]. Positions below 0 do not exist.

    `stride` neighbouring queries share the window of the one in their middle, of causal ones of the last, without the
    positions behind the query.
    """
    position = torch.arange(extent, device=device)
    group, number = position % dilation, position // dilation
    size = (extent - group + dilation - 1) // dilation
    leader = number // stride * stride + (stride - 1 if causal else stride // 2)
    leader = torch.minimum(leader, size - 1)
    first = leader - (kernel - 1) if causal else torch.minimum((leader - kernel // 2).clamp(min=0), size - kernel)
    members = first[:, None] + torch.arange(kernel, device=device)
    absent = (members < 0) | (members > number[:, None]) if causal else members < 0
    at = torch.where(absent, -1, members * dilation + group[:, None])
    return at, members - number[:, None]


def _index(
    name: str,
    extents: Sequence[int],
    kernel_size: Numbers,
    dilation: Numbers | None,
    is_causal: Numbers | None,
    stride: Numbers,
    device: torch.device,
) -> tuple[Tensor, list[Tensor]]:
    """Returns the index of the positions of each window, [positions, window], -1 where there is none, and for each axis
    the relative numbers, of shapes that broadcast to it."""
    axes = len(extents)
    result = torch.zeros(1, 1, dtype=torch.int64, device=device)
    relative = []
    of_axes = (each(kernel_size, axes), each(dilation, axes, 1), each(is_causal, axes), each(stride, axes))
    for extent, kernel, step, causal, shared in zip(extents, *of_axes, strict=True):
        if kernel * step > extent:
            raise ValueError(f"{name}: kernel_size * dilation: expected at most {extent}, got {kernel * step}")
        at, distance = _windows(extent, kernel, step, causal, shared, device)
        joined = result[:, None, :, None] * extent + at[None, :, None]
        joined = torch.where((result[:, None, :, None] < 0) | (at[None, :, None] < 0), -1, joined)
        ones = torch.ones_like(result)
        relative = [
            (r[:, None, :, None] * torch.ones_like(at)[None, :, None]).flatten(2).flatten(0, 1) for r in relative
        ]
        relative.append((ones[:, None, :, None] * distance[None, :, None]).flatten(2).flatten(0, 1))
        result = joined.flatten(2).flatten(0, 1)
    return result, relative


def _of_each(
    function: Callable[..., Tensor], axes: int, tensors: Sequence[Tensor], more: Tensor | None, *rest: Any
) -> Tensor:
    """The results for nested tensors, one after the other."""
    if not all(t.is_nested for t in (*tensors, *([] if more is None else [more]))):
        raise ValueError(f"na{axes}d: expected all tensors nested, or none")
    lists = [t.unbind() for t in tensors]
    single = lists[0][0].dim() == axes + 2  # without a batch
    others = [None] * len(lists[0]) if more is None else more.unbind()
    parts = []
    for *given, other in zip(*lists, others, strict=True):
        own = [t[None] if single and t is not None else t for t in (*given, other)]
        result = function(axes, *own[:-1], *rest[:2], own[-1], *rest[2:])
        parts.append(result[0] if single else result)
    return torch.nested.nested_tensor(parts)


def _products(
    axes: int,
    query: Tensor,
    key: Tensor,
    kernel_size: Numbers,
    dilation: Numbers | None = 1,
    additional_keys: Tensor | None = None,
    is_causal: Numbers | None = False,
    rpb: Tensor | None = None,
    *,
    stride: Numbers = 1,
) -> Tensor:
    """Queries and keys [N, heads, …, depth] -> their products [N, heads, …, positions of a window], with the relative
    biases `rpb` [heads, 2 * kernel_size - 1, …], and then those with the additional keys [N, heads, L, depth]."""
    name = f"na{axes}d_qk"
    if query.is_nested or key.is_nested:
        return _of_each(
            partial(_products, stride=stride),
            axes,
            (query, key),
            additional_keys,
            kernel_size,
            dilation,
            is_causal,
            rpb,
        )
    if query.dim() != axes + 3:
        raise ValueError(f"{name}: query: expected {axes + 3} dimensions, got {list(query.shape)}")
    extents = query.shape[2:-1]
    index, relative = _index(name, extents, kernel_size, dilation, is_causal, stride, query.device)
    keys = key.flatten(2, axes + 1)[:, :, index.clamp(min=0)]
    queries = query.flatten(2, axes + 1)
    products = (queries[:, :, :, None] * keys).sum(-1)
    if rpb is not None:
        if any(each(is_causal, axes)) or max(each(stride, axes)) > 1:
            raise ValueError(f"{name}: rpb: expected None for a causal axis or a stride")
        offsets = (r + kernel - 1 for r, kernel in zip(relative, each(kernel_size, axes), strict=True))
        index_of_bias: tuple[Any, ...] = (slice(None), *offsets)
        products = products + rpb[index_of_bias].to(products.dtype)
    products = products.masked_fill(index < 0, -torch.inf)
    if additional_keys is not None:
        _check_additional(name, "additional_keys", additional_keys, query)
        products = torch.cat([products, queries @ additional_keys.mT], -1)
    return products.unflatten(2, extents)


def _check_additional(name: str, what: str, given: Tensor, like: Tensor) -> None:
    if given.dim() != 4 or given.shape[:2] != like.shape[:2]:
        expected = [*like.shape[:2], "L", "depth"]
        raise ValueError(f"{name}: {what}: expected shape {expected}, got {list(given.shape)}")


def _sums(
    axes: int,
    attn: Tensor,
    value: Tensor,
    kernel_size: Numbers,
    dilation: Numbers | None = 1,
    additional_values: Tensor | None = None,
    is_causal: Numbers | None = False,
    *,
    stride: Numbers = 1,
) -> Tensor:
    """Weights [N, heads, …, positions of a window] and values [N, heads, …, depth] -> [N, heads, …, depth]. The last
    weights are those of the additional values [N, heads, L, depth]."""
    name = f"na{axes}d_av"
    if attn.is_nested or value.is_nested:
        return _of_each(
            partial(_sums, stride=stride), axes, (attn, value), additional_values, kernel_size, dilation, is_causal
        )
    if value.dim() != axes + 3:
        raise ValueError(f"{name}: value: expected {axes + 3} dimensions, got {list(value.shape)}")
    extents = value.shape[2:-1]
    index, _ = _index(name, extents, kernel_size, dilation, is_causal, stride, value.device)
    more = 0 if additional_values is None else additional_values.shape[-2]
    if attn.shape[-1] != index.shape[1] + more:
        raise ValueError(f"{name}: attn: expected {index.shape[1] + more} weights, got {list(attn.shape)}")
    values = value.flatten(2, axes + 1)[:, :, index.clamp(min=0)]
    weights, rest = attn.flatten(2, axes + 1).split([index.shape[1], more], -1)
    result = (weights.masked_fill(index < 0, 0)[..., None] * values).sum(3)
    if additional_values is not None:
        _check_additional(name, "additional_values", additional_values, value)
        result = result + rest @ additional_values
    return result.unflatten(2, extents)


def _with_biases(
    axes: int,
    query: Tensor,
    key: Tensor,
    rpb: Tensor | None,
    kernel_size: Numbers,
    dilation: Numbers | None = 1,
    additional_keys: Tensor | None = None,
    is_causal: Numbers | None = False,
) -> Tensor:
    """`na2d_qk` and so on with the biases as the third argument."""
    return _products(axes, query, key, kernel_size, dilation, additional_keys, is_causal, rpb)


def _of_depth(tensors: int, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Accepts the numbers of natten 0.15, too: kernel_size_d, kernel_size, dilation_d, dilation."""

    def call(axes: int, *args: Any, **named: Any) -> Tensor:
        given, rest = args[:tensors], args[tensors:]
        if len(rest) >= 4 and isinstance(rest[2], int):
            rest = ((rest[0], rest[1], rest[1]), (rest[2], rest[3], rest[3]), *rest[4:])
        for name in ("kernel_size", "dilation"):
            if f"{name}_d" in named:
                number = named.pop(name, 1)
                named[name] = (named.pop(f"{name}_d"), number, number)
        return function(axes, *given, *rest, **named)

    call.__doc__ = function.__doc__
    return call


def _of(axes: int, name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    result = partial(function, axes)
    result.__name__ = name  # type: ignore[attr-defined]
    result.__doc__ = function.__doc__
    return result


na1d, na2d, na3d = (_of(axes, f"na{axes}d", _attention) for axes in (1, 2, 3))
na1d_qk, na2d_qk = (_of(axes, f"na{axes}d_qk", _products) for axes in (1, 2))
na1d_av, na2d_av = (_of(axes, f"na{axes}d_av", _sums) for axes in (1, 2))
na1d_qk_with_bias, na2d_qk_with_bias = (_of(axes, f"na{axes}d_qk_with_bias", _with_biases) for axes in (1, 2))
na3d_qk = _of(3, "na3d_qk", _of_depth(2, _products))
na3d_av = _of(3, "na3d_av", _of_depth(2, _sums))
na3d_qk_with_bias = _of(3, "na3d_qk_with_bias", _of_depth(3, _with_biases))
natten1dqk, natten2dqk, natten3dqk = na1d_qk, na2d_qk, na3d_qk
natten1dav, natten2dav, natten3dav = na1d_av, na2d_av, na3d_av
natten1dqkrpb, natten2dqkrpb, natten3dqkrpb = na1d_qk_with_bias, na2d_qk_with_bias, na3d_qk_with_bias


def neighborhood_attention_generic(
    query: Tensor, key: Tensor, value: Tensor, *args: Any, **named: Any
) -> Tensor | tuple[Tensor, Tensor]:
    """`na1d`, `na2d` or `na3d`, by the number of dimensions."""
    axes = query.dim() - 3
    if axes not in (1, 2, 3):
        raise ValueError(f"neighborhood_attention_generic: query: expected 4 to 6 dimensions, got {list(query.shape)}")
    return _attention(axes, query, key, value, *args, **named)
