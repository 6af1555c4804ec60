# SPDX-License-Identifier: Apache-2.0
"""Small calls that models make of PyTorch: attention, windows, resizing, indices, masks, recurrent layers, integers.

A call is a function or a module and its tensors. The sizes of tensors that are floating-point numbers may vary; those
of masks and indices follow them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.ao.quantization.fx import _decomposed  # noqa: F401 - registers the operators
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.utils import rnn

_seeded = torch.Generator().manual_seed(0)


def _x(*shape: int) -> Tensor:
    return torch.randn(shape, generator=_seeded)


def _i(high: int, *shape: int) -> Tensor:
    return torch.randint(0, high, shape, generator=_seeded)


@dataclass(frozen=True)
class ModelCall:
    call: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    dynamic: bool = True
    """Whether its sizes may vary."""


def _with(module: nn.Module, call: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that has the module as the first argument of `call`."""
    return partial(call, module)


CALLS: dict[str, ModelCall] = {}


def _add(name: str, call: Callable[..., Any], *inputs: Tensor, dynamic: bool = True) -> None:
    assert name not in CALLS, name
    CALLS[name] = ModelCall(call, inputs, dynamic)


# ---- attention -------------------------------------------------------------------------------------


def _heads(x: Tensor, heads: int) -> Tensor:
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def _attention(x: Tensor, mask: Tensor | None = None, **how: Any) -> Tensor:
    q, k, v = (_heads(part, 2) for part in (x, x * 2, x + 1))
    return F.scaled_dot_product_attention(q, k, v, mask, **how).transpose(1, 2).flatten(2)


def _manual_attention(x: Tensor) -> Tensor:
    q, k, v = x.reshape(x.shape[0], x.shape[1], 3, 2, -1).permute(2, 0, 3, 1, 4).unbind(0)
    weights = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1)
    return (weights @ v).transpose(1, 2).reshape(x.shape[0], x.shape[1], -1)


def _causal_mask(x: Tensor) -> Tensor:
    size = x.shape[1]
    mask = torch.full((size, size), float("-inf")).triu(1)
    return (x @ x.mT + mask).softmax(-1)


def _key_padding(x: Tensor, length: Tensor) -> Tensor:
    mask = torch.arange(x.shape[1])[None, :] < length[:, None]
    return _attention(x, mask[:, None, None, :])


def _alibi(x: Tensor) -> Tensor:
    at = torch.arange(x.shape[1])
    slopes = 2.0 ** -torch.arange(1, 3)
    return _attention(x, -slopes[:, None, None] * (at[None, :] - at[:, None]).abs())


def _relative_position(x: Tensor) -> Tensor:
    side = 3
    at = torch.stack(torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")).flatten(1)
    relative = (at[:, :, None] - at[:, None, :]).permute(1, 2, 0) + (side - 1)
    index = relative[..., 0] * (2 * side - 1) + relative[..., 1]
    table = torch.linspace(-1, 1, (2 * side - 1) ** 2 * 2).view(-1, 2)
    bias = table[index.view(-1)].view(side * side, side * side, 2).permute(2, 0, 1)
    return _attention(x, bias.unsqueeze(0))


def _grouped_queries(x: Tensor) -> Tensor:
    q, kv = _heads(x, 4), _heads(x[..., :8], 2)
    return F.scaled_dot_product_attention(q, kv, kv, enable_gqa=True)


def _cross_attention(x: Tensor, y: Tensor) -> Tensor:
    scores = torch.einsum("bqhd,bkhd->bhqk", x.unflatten(-1, (2, -1)), y.unflatten(-1, (2, -1)))
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), y.unflatten(-1, (2, -1))).flatten(2)


def _linear_attention(x: Tensor) -> Tensor:
    q, k = F.elu(x) + 1, F.elu(x * 2) + 1
    context = torch.einsum("bnd,bne->bde", k, x)
    return torch.einsum("bnd,bde,bn->bne", q, context, 1 / (q @ k.sum(1).unsqueeze(-1)).squeeze(-1))


def _flex(x: Tensor) -> Tensor:
    q = _heads(x, 2)
    return flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score - (i - j).abs() * 0.1)


def _flex_causal(x: Tensor) -> Tensor:
    q = _heads(x, 2)
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, q.shape[2], q.shape[2], device="cpu")
    return flex_attention(q, q, q, block_mask=mask)


def _rotated_half(x: Tensor) -> Tensor:
    return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), -1)


def _rope(x: Tensor) -> Tensor:
    frequency = 1.0 / (10000.0 ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1]))
    angle = torch.outer(torch.arange(x.shape[-2]).float(), frequency)
    angle = torch.cat((angle, angle), -1)
    return x * angle.cos() + _rotated_half(x) * angle.sin()


def _rope_interleaved(x: Tensor) -> Tensor:
    angle = torch.arange(x.shape[-2]).float()[:, None] * 0.1 ** torch.arange(x.shape[-1] // 2)
    even, odd = x[..., ::2], x[..., 1::2]
    pairs = torch.stack((even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()), -1)
    return pairs.flatten(-2)


def _rope_complex(x: Tensor) -> Tensor:
    angle = torch.arange(x.shape[-2]).float()[:, None] * 0.1 ** torch.arange(x.shape[-1] // 2)
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


def _cache(x: Tensor, past: Tensor) -> Tensor:
    keys = torch.cat((past, x), 1)
    mask = torch.arange(keys.shape[1])[None] <= torch.arange(past.shape[1], keys.shape[1])[:, None]
    return F.scaled_dot_product_attention(x, keys, keys, mask)


def _multihead(**how: Any) -> nn.Module:
    return nn.MultiheadAttention(16, 4, batch_first=True, **how).eval()


_add("sdpa", _attention, _x(2, 9, 16))
_add("sdpa causal", lambda x: _attention(x, is_causal=True), _x(2, 9, 16))
_add("sdpa scale", lambda x: _attention(x, scale=0.3), _x(2, 9, 16))
_add("sdpa of three dimensions", lambda x: F.scaled_dot_product_attention(x, x, x), _x(2, 9, 16))
_add("sdpa of two dimensions", lambda x: F.scaled_dot_product_attention(x, x, x), _x(9, 16))
_add(
    "sdpa with a Boolean mask", lambda x: _attention(x, torch.ones(x.shape[1], x.shape[1]).tril().bool()), _x(2, 9, 16)
)
_add("attention by hand", _manual_attention, _x(2, 9, 48))
_add("causal mask by triu", _causal_mask, _x(2, 9, 8))
_add("key padding mask", _key_padding, _x(2, 9, 16), torch.tensor([9, 4]))
_add("alibi", _alibi, _x(2, 9, 16))
_add("relative position bias", _relative_position, _x(2, 9, 16), dynamic=False)
_add("grouped queries", _grouped_queries, _x(2, 9, 16), dynamic=False)
_add("cross attention by einsum", _cross_attention, _x(2, 5, 8), _x(2, 7, 8))
_add("linear attention", _linear_attention, _x(2, 9, 8))
_add("flex_attention with a score", _flex, _x(2, 9, 16))
_add("flex_attention with a mask", _flex_causal, _x(1, 16, 16), dynamic=False)
_add("rope", _rope, _x(2, 2, 9, 8))
_add("rope interleaved", _rope_interleaved, _x(2, 2, 9, 8))
_add("rope complex", _rope_complex, _x(2, 2, 9, 8))
_add("attention with a cache", _cache, _x(2, 3, 8), _x(2, 4, 8))
_add("MultiheadAttention", _with(_multihead(), lambda m, x: m(x, x, x)[0]), _x(2, 9, 16))
_add(
    "MultiheadAttention with weights",
    _with(_multihead(), lambda m, x: m(x, x, x, average_attn_weights=False)),
    _x(2, 9, 16),
)
_add(
    "MultiheadAttention with masks",
    _with(_multihead(), lambda m, x, p: m(x, x, x, key_padding_mask=p, attn_mask=torch.ones(9, 9).triu(1).bool())[0]),
    _x(2, 9, 16),
    torch.arange(9).expand(2, 9) > torch.tensor([[8], [6]]),
    dynamic=False,
)
_add("MultiheadAttention with bias_kv", _with(_multihead(add_bias_kv=True), lambda m, x: m(x, x, x)[0]), _x(2, 9, 16))
_add("MultiheadAttention with zeros", _with(_multihead(add_zero_attn=True), lambda m, x: m(x, x, x)[0]), _x(2, 9, 16))
_add(
    "MultiheadAttention of other sizes",
    _with(_multihead(kdim=8, vdim=8), lambda m, x, y: m(x, y, y)[0]),
    _x(2, 9, 16),
    _x(2, 5, 8),
)


# ---- transformers ----------------------------------------------------------------------------------


def _encoder(**how: Any) -> nn.Module:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, **how)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()


_decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 2, 32, batch_first=True), 1).eval()
_whole = nn.Transformer(16, 2, 1, 1, 32, batch_first=True).eval()
_padding = torch.arange(7).expand(2, 7) >= torch.tensor([[7], [5]])
_causal = nn.Transformer.generate_square_subsequent_mask
_add("TransformerEncoder", _encoder(), _x(2, 7, 16))
_add("TransformerEncoder norm first", _encoder(norm_first=True, activation="gelu"), _x(2, 7, 16))
_add(
    "TransformerEncoder causal",
    _with(_encoder(), lambda m, x: m(x, mask=_causal(x.shape[1]), is_causal=True)),
    _x(2, 7, 16),
)
_add(
    "TransformerEncoder with padding",
    _with(_encoder(), lambda m, x, p: m(x, src_key_padding_mask=p)),
    _x(2, 7, 16),
    _padding,
    dynamic=False,
)
_add("TransformerDecoder", _decoder, _x(2, 5, 16), _x(2, 7, 16))
_add(
    "TransformerDecoder with masks",
    lambda x, y, p: _decoder(x, y, tgt_mask=_causal(5), memory_key_padding_mask=p, tgt_is_causal=True),
    _x(2, 5, 16),
    _x(2, 7, 16),
    _padding,
    dynamic=False,
)
_add("Transformer", _whole, _x(2, 7, 16), _x(2, 5, 16))
_add(
    "Transformer with masks",
    lambda x, y, p: _whole(
        x, y, tgt_mask=_causal(5), src_key_padding_mask=p,
        memory_key_padding_mask=p,
    ),
    _x(2, 7, 16), _x(2, 5, 16), _padding, dynamic=False)  # fmt: skip


# ---- windows, patches, shuffles --------------------------------------------------------------------


def _windows(x: Tensor, size: int = 4) -> Tensor:
    n, h, w, c = x.shape
    x = x.view(n, h // size, size, w // size, size, c)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, size, size, c)


def _from_windows(x: Tensor, size: int, h: int, w: int) -> Tensor:
    x = x.view(-1, h // size, w // size, size, size, x.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, h, w, x.shape[-1])


def _shifted(x: Tensor) -> Tensor:
    x = torch.roll(x, (-2, -2), (1, 2))
    x = _from_windows(_windows(x).softmax(-1), 4, x.shape[1], x.shape[2])
    return torch.roll(x, (2, 2), (1, 2))


def _shift_mask(x: Tensor) -> Tensor:
    region = torch.zeros(1, x.shape[1], x.shape[2], 1)
    count = 0
    for rows in (slice(0, -4), slice(-4, -2), slice(-2, None)):
        for columns in (slice(0, -4), slice(-4, -2), slice(-2, None)):
            region[:, rows, columns, :] = count
            count += 1
    flat = _windows(region).view(-1, 16)
    difference = flat.unsqueeze(1) - flat.unsqueeze(2)
    mask = difference.masked_fill(difference != 0, -100.0).masked_fill(difference == 0, 0.0)
    windows = _windows(x).flatten(1, 2)
    return (windows @ windows.mT + mask.repeat(x.shape[0], 1, 1)).softmax(-1)


def _padded_windows(x: Tensor) -> Tensor:
    x = F.pad(x, (0, 0, 0, (4 - x.shape[2] % 4) % 4, 0, (4 - x.shape[1] % 4) % 4))
    return _windows(x)


def _patch_merging(x: Tensor) -> Tensor:
    return torch.cat((x[:, ::2, ::2], x[:, 1::2, ::2], x[:, ::2, 1::2], x[:, 1::2, 1::2]), -1)


def _channel_shuffle(x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    return x.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, c, h, w)


def _space_to_depth(x: Tensor) -> Tensor:
    return torch.cat([x[..., i::2, j::2] for j in (0, 1) for i in (0, 1)], 1)


def _overlapping_patches(x: Tensor) -> Tensor:
    columns = F.unfold(x, 3, padding=1, stride=2)
    return F.fold(columns, x.shape[-2:], 3, padding=1, stride=2)


def _masked_patches(x: Tensor, order: Tensor) -> Tensor:
    kept = torch.gather(x, 1, order[:, :3].unsqueeze(-1).expand(-1, -1, x.shape[-1]))
    restored = torch.cat((kept, torch.zeros(x.shape[0], x.shape[1] - 3, x.shape[-1])), 1)
    return torch.gather(restored, 1, order.argsort(1).unsqueeze(-1).expand(-1, -1, x.shape[-1]))


_add("window partition", _windows, _x(2, 8, 12, 3))
_add("window partition and shift", _shifted, _x(2, 8, 8, 3), dynamic=False)
_add("mask of shifted windows", _shift_mask, _x(1, 8, 8, 3), dynamic=False)
_add("padded windows", _padded_windows, _x(1, 7, 9, 3), dynamic=False)
_add("patch merging", _patch_merging, _x(2, 8, 8, 3))
_add("channel shuffle", _channel_shuffle, _x(2, 6, 5, 4))
_add("focus", _space_to_depth, _x(2, 3, 8, 6))
_add("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), _x(2, 12, 4, 5))
_add("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), _x(2, 3, 8, 6))
_add("F.channel_shuffle", lambda x: F.channel_shuffle(x, 3), _x(2, 6, 4, 5))
_add("unfold", lambda x: F.unfold(x, 3, padding=1), _x(2, 3, 6, 7))
_add("unfold dilated", lambda x: F.unfold(x, 3, 2, 2, 2), _x(2, 3, 9, 9))
_add("Tensor.unfold", lambda x: x.unfold(2, 4, 2).unfold(3, 4, 2), _x(2, 3, 8, 8))
_add("unfold and fold", _overlapping_patches, _x(2, 3, 8, 8), dynamic=False)
_add("masked patches", _masked_patches, _x(2, 6, 4), torch.stack([torch.randperm(6, generator=_seeded) for _ in "ab"]))
_add("patch embedding", nn.Conv2d(3, 8, 4, 4), _x(2, 3, 8, 8))


# ---- resizing and sampling -------------------------------------------------------------------------


def _grid(x: Tensor) -> Tensor:
    rows, columns = torch.meshgrid(
        torch.linspace(-1, 1, x.shape[-2]), torch.linspace(-1, 1, x.shape[-1]), indexing="ij"
    )
    return torch.stack((columns, rows), -1).expand(x.shape[0], -1, -1, -1) * 0.9


def _warp(x: Tensor, flow: Tensor) -> Tensor:
    rows, columns = torch.meshgrid(torch.arange(x.shape[2]), torch.arange(x.shape[3]), indexing="ij")
    at = torch.stack((columns, rows)).float()[None] + flow
    at = 2 * at / torch.tensor([x.shape[3] - 1, x.shape[2] - 1]).view(1, 2, 1, 1) - 1
    return F.grid_sample(x, at.permute(0, 2, 3, 1), align_corners=True, padding_mode="border")


def _position_embedding(x: Tensor) -> Tensor:
    table = torch.linspace(0, 1, 4 * 4 * 8).view(1, 8, 4, 4)
    table = F.interpolate(table, size=x.shape[-2:], mode="bicubic", align_corners=False)
    return x + table


def _pyramid(x: Tensor) -> Tensor:
    small = F.avg_pool2d(x, 2)
    return x + F.interpolate(small, size=x.shape[-2:], mode="nearest")


def _spatial_pyramid(x: Tensor) -> Tensor:
    return torch.cat([F.interpolate(F.adaptive_avg_pool2d(x, n), x.shape[-2:], mode="bilinear") for n in (1, 2, 3)], 1)


_IMAGE = (2, 3, 6, 8)
for _mode in ("nearest", "bilinear", "bicubic", "area", "nearest-exact"):
    _add(f"interpolate to a size, {_mode}", lambda x, m=_mode: F.interpolate(x, (9, 5), mode=m), _x(*_IMAGE))
    _add(f"interpolate by 2, {_mode}", lambda x, m=_mode: F.interpolate(x, scale_factor=2, mode=m), _x(*_IMAGE))
_add(
    "interpolate by 1.7, recomputed",
    lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
    _x(*_IMAGE),
)
_add("interpolate aligned", lambda x: F.interpolate(x, (9, 5), mode="bilinear", align_corners=True), _x(*_IMAGE))
_add("interpolate aligned bicubic", lambda x: F.interpolate(x, (9, 5), mode="bicubic", align_corners=True), _x(*_IMAGE))
_add("interpolate antialiased", lambda x: F.interpolate(x, (3, 4), mode="bilinear", antialias=True), _x(*_IMAGE))
_add("interpolate antialiased bicubic", lambda x: F.interpolate(x, (3, 4), mode="bicubic", antialias=True), _x(*_IMAGE))
_add("interpolate a line", lambda x: F.interpolate(x, 11, mode="linear"), _x(2, 3, 7))
_add("interpolate a volume", lambda x: F.interpolate(x, (3, 5, 7), mode="trilinear"), _x(1, 2, 4, 5, 6))
_add(
    "interpolate to another tensor",
    lambda x, y: F.interpolate(x, y.shape[-2:], mode="bilinear"),
    _x(1, 2, 4, 4),
    _x(1, 2, 7, 9),
)
_add("position embedding, bicubic", _position_embedding, _x(2, 8, 5, 6))
_add("top-down sum", _pyramid, _x(2, 3, 8, 6))
_add("spatial pyramid pooling", _spatial_pyramid, _x(1, 3, 7, 6), dynamic=False)
_add("grid_sample", lambda x: F.grid_sample(x, _grid(x), align_corners=False), _x(2, 3, 6, 7))
_add(
    "grid_sample, nearest, border",
    lambda x: F.grid_sample(x, _grid(x) * 1.3, "nearest", "border", False),
    _x(2, 3, 6, 7),
)
_add(
    "grid_sample, bicubic, reflection",
    lambda x: F.grid_sample(x, _grid(x) * 1.3, "bicubic", "reflection", False),
    _x(2, 3, 6, 7),
)
_add("warp by a flow", _warp, _x(2, 3, 6, 7), _x(2, 2, 6, 7))
_add(
    "affine_grid and grid_sample",
    lambda x, a: F.grid_sample(x, F.affine_grid(a, [2, 3, 5, 4], False), align_corners=False),
    _x(2, 3, 6, 7),
    _x(2, 2, 3),
)
_add("adaptive_avg_pool2d of 1", lambda x: F.adaptive_avg_pool2d(x, 1), _x(2, 3, 6, 7))
_add("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (3, 4)), _x(2, 3, 7, 9), dynamic=False)
_add("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (2, 3)), _x(2, 3, 7, 9), dynamic=False)
_add("global maximum", lambda x: x.amax((2, 3)), _x(2, 3, 6, 7))
_add(
    "max_pool2d with indices and max_unpool2d",
    lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    _x(1, 2, 6, 4),
    dynamic=False,
)
_add("lp_pool2d", lambda x: F.lp_pool2d(x.abs(), 3, 2), _x(1, 2, 8, 8))
_add("reflect padding", lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"), _x(1, 2, 5, 6))
_add("circular padding", lambda x: F.pad(x, (1, 2, 2, 1), mode="circular"), _x(1, 2, 5, 6))
_add("crop by negative padding", lambda x: F.pad(x, (-1, -2, 1, 0)), _x(1, 2, 5, 6))


# ---- indices and masks -----------------------------------------------------------------------------


def _assigned(x: Tensor) -> Tensor:
    y = x.clone()
    y[:, 1:3] = 0
    y[..., 0] += x[..., 1]
    y[:, -1, ::2] = x[:, 0, ::2]
    return y


def _assigned_by_mask(x: Tensor) -> Tensor:
    y = x.clone()
    y[x > 0] = -1
    return y


def _assigned_by_index(x: Tensor, i: Tensor) -> Tensor:
    y = x.clone()
    y[torch.arange(x.shape[0]), i] = 1.0
    return y


def _accumulated(x: Tensor, i: Tensor) -> Tensor:
    return torch.zeros(5, x.shape[1]).index_add(0, i, x)


def _scatter_mean(x: Tensor, i: Tensor) -> Tensor:
    total = torch.zeros(5, x.shape[1]).scatter_add(0, i[:, None].expand_as(x), x)
    count = torch.zeros(5).scatter_add(0, i, torch.ones_like(i, dtype=x.dtype))
    return total / count.clamp(min=1)[:, None]


def _top_queries(x: Tensor) -> Tensor:
    score, at = torch.topk(x.amax(-1), 3, 1)
    return torch.cat((torch.gather(x, 1, at.unsqueeze(-1).repeat(1, 1, x.shape[-1])), score.unsqueeze(-1)), -1)


def _peaks(x: Tensor) -> tuple[Tensor, Tensor]:
    kept = torch.where(F.max_pool2d(x, 3, 1, 1) == x, x, 0.0)
    score, at = kept.flatten(1).topk(5)
    return score, torch.stack((at // x.shape[-1], at % x.shape[-1]), -1)


def _boxes(x: Tensor) -> Tensor:
    cx, cy, w, h = x.unbind(-1)
    return torch.stack((cx - 0.5 * w, cy - 0.5 * h, cx + 0.5 * w, cy + 0.5 * h), -1).clamp(0, 1)


def _iou(a: Tensor, b: Tensor) -> Tensor:
    low, high = torch.max(a[:, None, :2], b[None, :, :2]), torch.min(a[:, None, 2:], b[None, :, 2:])
    both = (high - low).clamp(min=0).prod(-1)
    areas = [(x[:, 2:] - x[:, :2]).prod(-1) for x in (a, b)]
    return both / (areas[0][:, None] + areas[1] - both + 1e-6)


def _distribution(x: Tensor) -> Tensor:
    return x.view(x.shape[0], 4, 8, -1).softmax(2).mul(torch.arange(8).view(1, 1, 8, 1)).sum(2)


def _anchors(x: Tensor) -> Tensor:
    rows, columns = torch.meshgrid(torch.arange(x.shape[-2]), torch.arange(x.shape[-1]), indexing="ij")
    return torch.stack((columns, rows), -1).reshape(-1, 2).to(x.dtype).add(0.5).mul(8)


def _soft_argmax(x: Tensor) -> Tensor:
    flat = x.flatten(2).softmax(-1)
    columns = (torch.arange(x.shape[2] * x.shape[3]) % x.shape[3]).to(x.dtype)
    return (flat * columns).sum(-1)


def _mixture(x: Tensor, gate: Tensor) -> Tensor:
    weight, expert = gate.softmax(-1).topk(2)
    weight = weight / weight.sum(-1, keepdim=True)
    mask = F.one_hot(expert, 4).to(x.dtype)
    outputs = torch.einsum("td,edf->etf", x, torch.linspace(-1, 1, 4 * 4 * 4).view(4, 4, 4))
    return torch.einsum("tke,tk,etf->tf", mask, weight, outputs)


def _sinusoids(x: Tensor) -> Tensor:
    at = torch.arange(x.shape[1]).unsqueeze(1)
    step = torch.exp(torch.arange(0, 8, 2) * (-math.log(10000.0) / 8))
    table = torch.zeros(x.shape[1], 8)
    table[:, 0::2] = torch.sin(at * step)
    table[:, 1::2] = torch.cos(at * step)
    return x + table


def _positions_of_mask(x: Tensor, padding: Tensor) -> Tensor:
    y, z = (~padding).cumsum(1, dtype=torch.float32), (~padding).cumsum(2, dtype=torch.float32)
    y, z = y / (y[:, -1:, :] + 1e-6), z / (z[:, :, -1:] + 1e-6)
    return x + torch.stack((y.sin(), z.cos()), 1)


def _hungarian_cost(x: Tensor, labels: Tensor) -> Tensor:
    return -x.softmax(-1)[:, labels] + torch.cdist(x, x[:3], p=1)


_add("assignment of slices", _assigned, _x(2, 4, 6), dynamic=False)
_add("assignment by a mask", _assigned_by_mask, _x(3, 4))
_add("assignment by indices", _assigned_by_index, _x(3, 4), torch.tensor([1, 3, 0]), dynamic=False)
_add("reading by two indices", lambda x, i: x[torch.arange(3), i], _x(3, 4, 2), torch.tensor([1, 3, 0]), dynamic=False)
_add("reading by indices around a slice", lambda x, i: x[i, :, i], _x(4, 2, 4), torch.tensor([1, 3]))
_add("reading with None and dots", lambda x: x[None, ..., 1:, None, -1], _x(3, 4, 5))
_add("reading by a mask", lambda x: x[x > 0], _x(3, 4))
_add("nonzero", lambda x: torch.nonzero(x > 0), _x(3, 4))
_add("where with one argument", lambda x: torch.where(x > 0), _x(3, 4))
_add("index_add", _accumulated, _x(4, 3), torch.tensor([0, 2, 0, 4]))
_add("mean of groups", _scatter_mean, _x(4, 3), torch.tensor([0, 2, 0, 4]))
_add(
    "index_put with accumulation",
    lambda x, i: torch.zeros(5, 3).index_put((i,), x, accumulate=True),
    _x(4, 3),
    torch.tensor([0, 2, 0, 4]),
)
_add(
    "scatter of a mask",
    lambda x, i: torch.zeros(2, 6).scatter(1, i, 1.0) * x,
    _x(2, 6),
    torch.tensor([[0, 2], [5, 1]]),
    dynamic=False,
)
_add("masked_scatter", lambda x, y: x.masked_scatter(x > 0, y), _x(3, 4), _x(12), dynamic=False)
_add("topk of queries", _top_queries, _x(2, 6, 4))
_add("peaks of a heat map", _peaks, _x(1, 1, 6, 7))
_add("boxes of centres", _boxes, _x(2, 5, 4))
_add("intersection over union", _iou, _x(4, 4), _x(3, 4))
_add("distribution focal decoding", _distribution, _x(2, 32, 6))
_add("anchors", _anchors, _x(1, 3, 4, 5))
_add("soft argmax", _soft_argmax, _x(2, 3, 4, 5))
_add("mixture of experts", _mixture, _x(5, 4), _x(5, 4), dynamic=False)
_add("sinusoidal positions", _sinusoids, _x(2, 5, 8), dynamic=False)
_add(
    "sine positions of a mask",
    _positions_of_mask,
    _x(1, 2, 4, 5),
    torch.zeros(1, 4, 5, dtype=torch.bool),
    dynamic=False,
)
_add("matching cost", _hungarian_cost, _x(5, 4), torch.tensor([0, 3, 1]))
_add("bincount", lambda i: torch.bincount(i, minlength=6), _i(6, 9))
_add("unique", lambda i: torch.unique(i, return_inverse=True), _i(6, 9))
_add("bucketize", lambda x: torch.bucketize(x, torch.linspace(-1, 1, 5)), _x(3, 4))
_add("searchsorted", lambda x: torch.searchsorted(torch.linspace(-1, 1, 5), x), _x(3, 4))
_add("one_hot", lambda i: F.one_hot(i, 6), _i(6, 3, 4))
_add("argsort descending", lambda x: x.argsort(-1, descending=True), _x(3, 7))
_add("repeat_interleave", lambda x: x.repeat_interleave(3, 1), _x(2, 4, 3))
_add(
    "repeat_interleave of a tensor",
    lambda x, r: x.repeat_interleave(r, 0),
    _x(3, 4),
    torch.tensor([2, 0, 3]),
    dynamic=False,
)
_add("expand and flatten", lambda x: x[:, None].expand(-1, 4, -1).flatten(0, 1), _x(3, 5))
_add("tile, flip, rot90", lambda x: torch.rot90(x.tile(1, 2).flip(0), 1, (0, 1)), _x(3, 4))
_add("chunk", lambda x: x.chunk(3, 1), _x(2, 6, 3))
_add("split by sizes", lambda x: x.split([2, 3, 1], 1), _x(2, 6, 3))
_add("tensor_split", lambda x: x.tensor_split(2, 1), _x(2, 6, 3), dynamic=False)
_add("gated unit", lambda x: F.glu(x, 1), _x(2, 6, 3))
_add("narrow by a size", lambda x, y: x[:, : y.shape[1]] + y, _x(2, 6), _x(2, 4))
_add("diagonal", lambda x: torch.diag_embed(x) + torch.diagonal(x @ x.mT)[..., None], _x(4, 4), dynamic=False)
_add(
    "tril_indices",
    lambda x: x[:, torch.tril_indices(4, 4, -1)[0], torch.tril_indices(4, 4, -1)[1]],
    _x(2, 4, 4),
    dynamic=False,
)
_add("cartesian product", lambda x, y: torch.cartesian_prod(x, y), _x(3), _x(4))
_add("linspace of a size", lambda x: torch.linspace(0, 1, x.shape[-1]) * x, _x(2, 7))
_add("size as a number", lambda x: x / math.sqrt(x.shape[-1]), _x(2, 7))
_add("size of an input as a tensor", lambda x: torch.tensor(x.shape[-2:]).float().sum() * x, _x(2, 7), dynamic=False)


# ---- products, norms, activations ------------------------------------------------------------------


def _pairwise(x: Tensor) -> Tensor:
    square = (x * x).sum(-1)
    return square[:, :, None] + square[:, None] - 2 * x @ x.mT


def _feature_norm(x: Tensor) -> Tensor:
    mean, deviation = torch.std_mean(x, (2, 3), keepdim=True)
    return (x - deviation) / (mean + 1e-5)


def _spherical(x: Tensor, y: Tensor) -> Tensor:
    return F.linear(F.normalize(x), F.normalize(y)).clamp(-1, 1).acos()


def _gram_schmidt(x: Tensor) -> Tensor:
    first = F.normalize(x[..., :3], dim=-1)
    second = F.normalize(x[..., 3:] - (first * x[..., 3:]).sum(-1, keepdim=True) * first, dim=-1)
    return torch.stack((first, second, torch.cross(first, second, dim=-1)), -2)


def _rodrigues(x: Tensor) -> Tensor:
    angle = x.norm(dim=-1, keepdim=True)
    a, b, c = (x / angle).unbind(-1)
    zero = torch.zeros_like(a)
    skew = torch.stack((zero, -c, b, c, zero, -a, -b, a, zero), -1).view(-1, 3, 3)
    return torch.eye(3) + angle.sin()[..., None] * skew + (1 - angle.cos())[..., None] * skew @ skew


def _spectrum(x: Tensor) -> Tensor:
    return torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True).abs()


_add("einsum with a diagonal", lambda x: torch.einsum("bii->bi", x), _x(2, 4, 4), dynamic=False)
_add("einsum of three", lambda x, y, z: torch.einsum("bi,ij,bj->b", x, y, z), _x(3, 4), _x(4, 5), _x(3, 5))
_add("einsum with dots", lambda x, y: torch.einsum("...ij,...jk->...ik", x, y), _x(2, 3, 4), _x(2, 4, 5))
_add("tensordot", lambda x, y: torch.tensordot(x, y, ([1, 2], [0, 1])), _x(2, 3, 4), _x(3, 4, 5))
_add("bilinear", nn.Bilinear(3, 4, 5), _x(2, 3), _x(2, 4))
_add(
    "baddbmm",
    lambda x, y: torch.baddbmm(x[..., :3], x, y, beta=0.5, alpha=2.0),
    _x(2, 3, 4),
    _x(2, 4, 3),
    dynamic=False,
)
_add("kron", torch.kron, _x(2, 3), _x(3, 2))
_add("pairwise distances", _pairwise, _x(2, 5, 3))
_add("cdist", torch.cdist, _x(2, 5, 3), _x(2, 4, 3))
_add("cosine_similarity", lambda x, y: F.cosine_similarity(x[:, None], y[None], -1), _x(3, 4), _x(5, 4))
_add("std_mean", _feature_norm, _x(2, 3, 4, 5))
_add("variance", lambda x: x.var(-1, unbiased=False) + x.var(-1), _x(3, 4))
_add("RMSNorm", nn.RMSNorm(8), _x(2, 3, 8))
_add("GroupNorm", nn.GroupNorm(2, 4), _x(2, 4, 5, 5))
_add("InstanceNorm2d", nn.InstanceNorm2d(3, affine=True).eval(), _x(2, 3, 5, 5))
_add("LayerNorm of channels", lambda x: F.layer_norm(x.permute(0, 2, 3, 1), (3,)).permute(0, 3, 1, 2), _x(2, 3, 4, 5))
_add("local response norm", nn.LocalResponseNorm(3), _x(2, 6, 4, 4))
_add("weight norm", nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), _x(2, 4))
_add("spectral norm", nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)).eval(), _x(2, 4))
_add(
    "scaled weights of a convolution",
    lambda x: F.conv2d(x, torch.ones(4, 3, 3, 3) * x.mean(), padding="same"),
    _x(1, 3, 5, 5),
    dynamic=False,
)
_add("angles of features", _spherical, _x(3, 4), _x(5, 4))
_add("rotation of six numbers", _gram_schmidt, _x(3, 6))
_add("rotation of a vector", _rodrigues, _x(3, 3))
_add("quaternion normalization", lambda x: F.normalize(x, dim=-1) * torch.sign(x[..., :1]), _x(3, 4))
_add("inverse of a matrix", lambda x: torch.inverse(x @ x.mT + torch.eye(4)), _x(2, 4, 4))
_add("log1p, expm1, softplus", lambda x: F.softplus(torch.log1p(x.abs())) + torch.expm1(x), _x(3, 4))
_add("inverse sigmoid", lambda x: torch.logit(x.sigmoid(), eps=1e-5), _x(3, 4))
_add("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), _x(3, 4))
_add("squared relu, mish, hardswish", lambda x: F.relu(x).square() + F.mish(x) + F.hardswish(x), _x(3, 4))
_add("gumbel softmax without noise", lambda x: F.softmax(x / 0.5, -1).max(-1), _x(3, 4))
_add("logsumexp", lambda x: torch.logsumexp(x, (1, 2)), _x(2, 3, 4))
_add("cumsum and cumprod", lambda x: x.cumsum(1) + (1 - x.sigmoid()).cumprod(1), _x(2, 5))
_add("cummax", lambda x: x.cummax(1), _x(2, 5))
_add("quantile", lambda x: x.quantile(0.3, 1), _x(2, 5))
_add("median", lambda x: x.median(1), _x(2, 5))
_add("nan_to_num", lambda x: torch.nan_to_num(torch.log(x)), _x(3, 4))
_add("remainder and fmod", lambda x: torch.remainder(x, 0.3) + torch.fmod(x, 0.7), _x(3, 4))
_add("floor division", lambda i: torch.div(i - 4, 3, rounding_mode="floor") + (i - 4) // 2 + (i - 4) % 3, _i(9, 7))
_add("bits", lambda i: (i & 3) | (i ^ 5) << 1, _i(9, 7))
_add("depthwise convolution", nn.Conv2d(4, 8, 3, padding=2, dilation=2, groups=4), _x(1, 4, 7, 7))
_add("transposed convolution", nn.ConvTranspose2d(3, 2, 3, 2, 1, output_padding=1), _x(1, 3, 4, 5))
_add("causal convolution", _with(nn.Conv1d(3, 4, 3), lambda m, x: m(F.pad(x, (2, 0)))), _x(1, 3, 7))
_add("spectrum", _spectrum, _x(2, 64))
_add("fft2 mixing", lambda x: torch.fft.fft2(x).real, _x(2, 8, 8))
_add(
    "state space scan",
    lambda a, x: torch.stack([x[:, : i + 1].sum(1) * a[:, i] for i in range(4)], 1),
    _x(2, 4),
    _x(2, 4, 3)[..., 0],
    dynamic=False,
)


# ---- recurrent layers ------------------------------------------------------------------------------


class Packed(nn.Module):
    """A recurrent layer over sequences of several lengths."""

    def __init__(self, layer: nn.Module, enforce_sorted: bool = True) -> None:
        super().__init__()
        self.layer = layer
        self.enforce_sorted = enforce_sorted

    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=self.enforce_sorted)
        result, state = self.layer(packed)
        return rnn.pad_packed_sequence(result, batch_first=True)[0], state


_lengths, _unsorted = torch.tensor([5, 3, 2]), torch.tensor([3, 5, 2])
_add("LSTM", nn.LSTM(4, 3, batch_first=True), _x(2, 5, 4))
_add("LSTM of two layers, both ways", nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True), _x(2, 5, 4))
_add("LSTM with proj_size", nn.LSTM(4, 6, proj_size=3), _x(5, 2, 4))
_add("LSTM with proj_size, two layers, both ways", nn.LSTM(4, 6, 2, proj_size=3, bidirectional=True), _x(5, 2, 4))
_add("LSTM of one sequence", nn.LSTM(4, 3), _x(5, 4), dynamic=False)
_add("GRU", nn.GRU(4, 3, batch_first=True, bidirectional=True), _x(2, 5, 4))
_add("RNN", nn.RNN(4, 3, nonlinearity="relu"), _x(5, 2, 4))
_add("LSTMCell", nn.LSTMCell(4, 3), _x(2, 4))
_add("GRUCell", nn.GRUCell(4, 3), _x(2, 4))
_add("packed LSTM", Packed(nn.LSTM(4, 3, batch_first=True)), _x(3, 5, 4), _lengths)
_add(
    "packed LSTM, both ways",
    Packed(nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True)),
    _x(3, 5, 4),
    _lengths,
    dynamic=False,
)
_add("packed LSTM, not sorted", Packed(nn.LSTM(4, 3, batch_first=True), False), _x(3, 5, 4), _unsorted, dynamic=False)
_add("packed GRU", Packed(nn.GRU(4, 3, batch_first=True)), _x(3, 5, 4), _lengths, dynamic=False)
_add(
    "packed GRU, both ways",
    Packed(nn.GRU(4, 3, batch_first=True, bidirectional=True)),
    _x(3, 5, 4),
    _lengths,
    dynamic=False,
)
_add("packed RNN", Packed(nn.RNN(4, 3, batch_first=True)), _x(3, 5, 4), _lengths, dynamic=False)
_add("EmbeddingBag", nn.EmbeddingBag(6, 3, mode="mean"), _i(6, 4, 5), dynamic=False)


# ---- integers and few bits -------------------------------------------------------------------------


def _int8_linear(x: Tensor) -> Tensor:
    scale = x.abs().amax(1, keepdim=True) / 127
    a = torch.round(x / scale).clamp(-128, 127).to(torch.int8)
    b = (torch.arange(32 * 8).view(32, 8) % 7 - 3).to(torch.int8)
    return torch._int_mm(a, b).to(x.dtype) * scale


def _int8_weights(x: Tensor) -> Tensor:
    weights = (torch.arange(4 * 8).view(4, 8) % 7 - 3).to(torch.int8)
    return F.linear(x, weights.to(x.dtype) * 0.1)


def _packed_int4(x: Tensor) -> Tensor:
    packed = torch.arange(4 * 4, dtype=torch.uint8).view(4, 4) * 15
    weights = torch.stack((packed & 15, packed >> 4), -1).flatten(1).to(x.dtype) - 8
    return F.linear(x, weights * 0.1)


def _float8_weights(x: Tensor) -> Tensor:
    weights = torch.linspace(-2, 2, 32).view(4, 8).to(torch.float8_e4m3fn)
    return F.linear(x, weights.to(x.dtype))


def _bits_of_floats(x: Tensor) -> Tensor:
    return x.view(torch.int32) >> 23


def _bits_to_floats(x: Tensor) -> Tensor:
    """Computes 1 / sqrt(x) from the bits, and one step of Newton's method, as old games do."""
    y = (0x5F3759DF - torch.div(x.abs().float().view(torch.int32), 2, rounding_mode="floor")).view(torch.float32)
    return (y * (1.5 - 0.5 * x.abs() * y * y)).to(x.dtype)


def _experts(x: Tensor) -> Tensor:
    weights = torch.linspace(-1, 1, 4 * 8 * 16).view(4, 8, 16).to(x.dtype)
    ends = torch.tensor([4, 4, 12, 16], dtype=torch.int32)
    halves = torch._grouped_mm(x.bfloat16(), weights.bfloat16(), offs=ends)
    return torch.cat([torch._grouped_mm(x.float(), weights.float(), offs=ends), halves.float()])


def _int8_packed(x: Tensor) -> Tensor:
    weights = (torch.arange(4 * 16).view(4, 16) % 7 - 3).to(torch.int8)
    return torch.ops.aten._weight_int8pack_mm(x.float(), weights, torch.tensor([0.1, 0.2, 0.3, 0.4]))


def _float8_product(x: Tensor) -> Tensor:
    weights = torch.linspace(-2, 2, 32 * 16).view(32, 16).to(torch.float8_e4m3fn).t()
    scale = torch.tensor(0.5)
    return torch._scaled_mm(x.to(torch.float8_e4m3fn), weights, scale, scale, out_dtype=torch.float32)


_q = torch.ops.quantized_decomposed


def _quantized(x: Tensor) -> Tensor:
    q = _q.quantize_per_tensor(x, 0.1, 3, -128, 127, torch.int8)
    return _q.dequantize_per_tensor(q, 0.1, 3, -128, 127, torch.int8)


def _quantized_channels(x: Tensor) -> Tensor:
    scale, zero = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2])
    q = _q.quantize_per_channel(x, scale, zero, 1, 0, 255, torch.uint8)
    return _q.dequantize_per_channel(q, scale, zero, 1, 0, 255, torch.uint8)


def _quantized_tensors(x: Tensor) -> Tensor:
    scale, zero = torch.tensor(0.1), torch.tensor(3)
    q = _q.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
    return _q.dequantize_per_tensor.tensor(q, scale, zero, -128, 127, torch.int8)


def _quantized_dynamic(x: Tensor) -> Tensor:
    scale, zero = _q.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)
    q = _q.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
    return _q.dequantize_per_tensor.tensor(q, scale, zero, -128, 127, torch.int8)


def _quantized_tokens(x: Tensor) -> Tensor:
    scale, zero = _q.choose_qparams_per_token_asymmetric(x, torch.int8)
    q = _q.quantize_per_token(x, scale, zero, -128, 127, torch.int8)
    return _q.dequantize_per_token(q, scale, zero, -128, 127, torch.int8, torch.float32)


_fake_quantize = torch.ao.quantization.FakeQuantize(quant_min=-128, quant_max=127, dtype=torch.qint8)
_fake_quantize.disable_observer()
_add("_int_mm", _int8_linear, _x(24, 32))
_add("int8 weights", _int8_weights, _x(3, 8))
_add("packed int4 weights", _packed_int4, _x(3, 8))
_add("float8 weights", _float8_weights, _x(3, 8))
_add("view of another type", _bits_of_floats, _x(3, 4))
_add("view of integers as floats", _bits_to_floats, _x(3, 4) + 2)
_add("grouped products of experts", _experts, _x(16, 8), dynamic=False)
_add("_weight_int8pack_mm", _int8_packed, _x(3, 16))
_add("product of float8", _float8_product, _x(16, 16), dynamic=False)
_add("quantized per tensor", _quantized, _x(3, 4))
_add("quantized per channel", _quantized_channels, _x(2, 3, 4), dynamic=False)
_add("quantized by tensors", _quantized_tensors, _x(3, 4))
_add("quantized dynamically", _quantized_dynamic, _x(3, 4))
_add("quantized per token", _quantized_tokens, _x(3, 4))
_add("fake_quantize", lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127), _x(3, 4))
_add(
    "fake_quantize per channel",
    lambda x: torch.fake_quantize_per_channel_affine(
        x, torch.tensor([0.1, 0.2, 0.3]), torch.zeros(3, dtype=torch.int32), 0, -128, 127
    ),
    _x(3, 4),
    dynamic=False,
)
_add("FakeQuantize", _fake_quantize, _x(3, 4), dynamic=False)
_add("half precision inside", lambda x: (x.half() * 2).float(), _x(3, 4))
_add("bfloat16 inside", lambda x: (x.bfloat16() * 2).float(), _x(3, 4))
