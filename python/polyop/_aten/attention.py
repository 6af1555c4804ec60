"""Attention, and the sort that block masks of flex_attention need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from polyop._aten.table import decomposes

aten = torch.ops.aten


@decomposes("aten::scaled_dot_product_attention", when="other than four dimensions")
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    rank = query.dim()
    if rank == 4:
        return NotImplemented
    four = [_in_four(tensor) for tensor in (query, key, value)]
    if attn_mask is not None and attn_mask.dim() > 2:
        attn_mask = _in_four(attn_mask.expand([*query.shape[:-1], key.shape[-2]]))
    result = aten.scaled_dot_product_attention(
        *four, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )  # fmt: skip
    return result.reshape([*query.shape[:-1], value.shape[-1]])


def _in_four(tensor: Tensor) -> Tensor:
    """Returns a tensor in four dimensions. With fewer ones there is one head, more are those of the batch."""
    if tensor.dim() > 4:
        return tensor.flatten(0, -4)
    return tensor.unsqueeze(-3) if tensor.dim() == 3 else tensor.reshape([1, 1, *tensor.shape])


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
