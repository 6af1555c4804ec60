# SPDX-License-Identifier: Apache-2.0
"""Attention, and the sort that block masks of flex_attention need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from polyop._aten.table import WRONG, decomposes

aten = torch.ops.aten
_is_inner: ContextVar[bool] = ContextVar("polyop.is_inner_attention", default=False)


@decomposes("aten::scaled_dot_product_attention", without=WRONG, when="a mask, or other than four dimensions")
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    ranks = {tensor.dim() for tensor in (query, key, value)}
    if len(ranks) > 1:
        query, key, value = (t.reshape([1] * (max(ranks) - t.dim()) + list(t.shape)) for t in (query, key, value))
        if not enable_gqa:
            batch = torch.broadcast_shapes(*(t.shape[:-2] for t in (query, key, value)))
            query, key, value = (t.expand(*batch, *t.shape[-2:]) for t in (query, key, value))
        return aten.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    if query.dim() == 4:
        if attn_mask is None or _is_inner.get():
            return NotImplemented
        # The exporter's form gives a query that may attend to nothing the mean of all values, or NaN.
        kept = attn_mask if attn_mask.dtype == torch.bool else attn_mask != -torch.inf
        token = _is_inner.set(True)
        try:
            result = aten.scaled_dot_product_attention(
                query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
            )
        finally:
            _is_inner.reset(token)
        return torch.where(kept.any(-1, keepdim=True), result, torch.zeros_like(result))
    four = [_in_four(tensor) for tensor in (query, key, value)]
    if attn_mask is not None and attn_mask.dim() > 2:
        attn_mask = _in_four(attn_mask.expand([*query.shape[:-1], key.shape[-2]]))
    result = aten.scaled_dot_product_attention(
        *four, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )
    return result.reshape([*query.shape[:-1], value.shape[-1]])


def _in_four(tensor: Tensor) -> Tensor:
    """Returns a tensor in four dimensions. With fewer ones there is one head, more are those of the batch."""
    if tensor.dim() > 4:
        return tensor.flatten(0, -4)
    return tensor.unsqueeze(-3) if tensor.dim() == 3 else tensor.reshape([1, 1, *tensor.shape])


def encode(
    encoder: torch.nn.TransformerEncoder,
    src: Tensor,
    mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
    is_causal: bool | None = None,
) -> Tensor:
    """Computes an encoder without masked tokens, as PyTorch does in inference: they are zeros before the last norm.

    With `mask_check`, PyTorch does so if all masked tokens are at the end. Returns NotImplemented for the calls that
    keep them: a branch of the program.
    """
    first = encoder.layers[0]
    if (
        src_key_padding_mask is None
        or mask is not None
        or src.dim() != 3
        or first.training
        or not getattr(encoder, "use_nested_tensor", False)
        or not torch.backends.mha.get_fastpath_enabled()
        or torch.is_autocast_enabled()
    ):
        return NotImplemented
    padding: Any = functional._canonical_mask(
        mask=src_key_padding_mask,
        mask_name="src_key_padding_mask",
        other_type=None,
        other_name="mask",
        target_type=src.dtype,
    )
    output = src
    for layer in encoder.layers:
        output = layer(output, src_mask=None, is_causal=False, src_key_padding_mask=padding)
    kept = padding == 0
    if getattr(encoder, "mask_check", True):
        kept = kept | (~kept[:, :-1] & kept[:, 1:]).any()
    output = torch.where(kept.unsqueeze(-1), output, torch.zeros_like(output))
    return output if encoder.norm is None else encoder.norm(output)


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable[..., Tensor], block_mask: Sequence[Any],
    scale: float, kernel_options: Any, score_buffers: Sequence[Tensor] = (), mask_buffers: Sequence[Tensor] = (),
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Computes the higher-order operator of this name. The functions get the indices of all elements at once."""
    key, value = (_for_each_head(tensor, query) for tensor in (key, value))
    scores = torch.matmul(query, key.mT) * scale
    at = [torch.arange(size, device=query.device) for size in scores.shape]
    at = [index.reshape([-1 if axis == i else 1 for i in range(4)]) for axis, index in enumerate(at)]
    never = torch.full([], -torch.inf, dtype=scores.dtype, device=scores.device)
    scores = torch.where(block_mask[-1](*at, *mask_buffers), score_mod(scores, *at, *score_buffers), never)
    high = scores.amax(-1)
    some = (high != -torch.inf).unsqueeze(-1)
    weights = torch.where(some, torch.softmax(scores, -1), torch.zeros_like(scores))
    return torch.matmul(weights, value), torch.logsumexp(scores, -1), high


def _for_each_head(tensor: Tensor, query: Tensor) -> Tensor:
    """Returns the keys or values of each head of the query: several heads may share them, and the whole batch."""
    batch, heads, size, width = tensor.shape
    if heads != query.shape[1]:
        wide = tensor.unsqueeze(2).expand([batch, heads, query.shape[1] // heads, size, width])
        tensor = wide.reshape([batch, query.shape[1], size, width])
    return tensor


@decomposes("aten::sort.stable")
def sort_stable(self: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False) -> Any:
    """ONNX's TopK, which PyTorch's exporter writes for a sort, keeps the order of equal elements."""
    return aten.sort.default(self, dim, descending)
