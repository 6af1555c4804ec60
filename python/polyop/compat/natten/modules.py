# SPDX-License-Identifier: Apache-2.0
"""Neighborhood attention as layers, with the arguments of natten 0.14 to 0.21."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from polyop.compat.natten import functional

__all__ = ["NeighborhoodAttention1D", "NeighborhoodAttention2D", "NeighborhoodAttention3D"]


class _NeighborhoodAttention(nn.Module):
    """Projects tokens [N, …, embed_dim] to queries, keys and values, and the result back."""

    axes = 0

    def __init__(
        self,
        embed_dim: int | None = None,
        num_heads: int = 1,
        kernel_size: int | Sequence[int] = 7,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] | None = 1,
        is_causal: bool | Sequence[bool] = False,
        qkv_bias: bool = True,
        qk_scale: float | None = None,
        proj_drop: float = 0.0,
        *,
        dim: int | None = None,
        rel_pos_bias: bool = False,
        bias: bool | None = None,
        attn_drop: float = 0.0,
        use_experimental_ops: bool = False,
    ) -> None:
        """Up to 0.17, embed_dim was `dim`, and there were `rel_pos_bias` and `attn_drop`; up to 0.15, rel_pos_bias was
        `bias`, True by default. Such a layer pads inputs that are smaller than its window with zeros.
        `use_experimental_ops` has no effect."""
        super().__init__()
        del use_experimental_ops
        width = dim if embed_dim is None else embed_dim
        if width is None or (dim is not None and dim != width) or width % num_heads:
            raise ValueError(
                f"NeighborhoodAttention{self.axes}D: embed_dim: expected a multiple of num_heads = {num_heads}, got {width}"
            )
        self.num_heads, self.scale = num_heads, qk_scale
        self.arguments = {"kernel_size": kernel_size, "stride": stride, "dilation": dilation, "is_causal": is_causal}
        self.qkv = nn.Linear(width, 3 * width, bias=qkv_bias)
        self._pads = bias is not None
        self.rpb = None
        if rel_pos_bias or bias:
            sizes = kernel_size if isinstance(kernel_size, Sequence) else [kernel_size] * self.axes
            self.rpb = nn.Parameter(torch.zeros(num_heads, *(2 * size - 1 for size in sizes)))
            nn.init.trunc_normal_(self.rpb, std=0.02)
        self.attn_drop = nn.Dropout(attn_drop)
        self.proj = nn.Linear(width, width)
        self.proj_drop = nn.Dropout(proj_drop)

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != self.axes + 2:
            raise ValueError(
                f"NeighborhoodAttention{self.axes}D: expected {self.axes + 2} dimensions, got {list(x.shape)}"
            )
        extents = x.shape[1:-1]
        if self._pads:
            sizes, steps = (functional.each(self.arguments[n], self.axes, 1) for n in ("kernel_size", "dilation"))
            missing = [max(s * step - extent, 0) for s, step, extent in zip(sizes, steps, extents, strict=True)]
            x = nn.functional.pad(x, [0, 0, *(n for extent in missing[::-1] for n in (0, extent))])
        query, key, value = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).unbind(-3)
        if self.training and self.attn_drop.p > 0:
            result = self._with_dropout(query, key, value)
        else:
            attend = getattr(functional, f"na{self.axes}d")
            result = attend(query, key, value, **self.arguments, scale=self.scale, rpb=self.rpb)
        if self._pads:
            inner = (slice(None), *(slice(extent) for extent in extents))
            result = result[inner]
        return self.proj_drop(self.proj(result.flatten(-2)))

    def _with_dropout(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query, key, value = (t.movedim(-2, 1) for t in (query, key, value))
        scaled = query * (self.scale or query.shape[-1] ** -0.5)
        weights = getattr(functional, f"na{self.axes}d_qk")(scaled, key, **self.arguments, rpb=self.rpb).softmax(-1)
        return getattr(functional, f"na{self.axes}d_av")(self.attn_drop(weights), value, **self.arguments).movedim(
            1, -2
        )


class NeighborhoodAttention1D(_NeighborhoodAttention):
    """For sequences [N, L, embed_dim]."""

    axes = 1


class NeighborhoodAttention2D(_NeighborhoodAttention):
    """For images [N, H, W, embed_dim]."""

    axes = 2


class NeighborhoodAttention3D(_NeighborhoodAttention):
    """For volumes [N, D, H, W, embed_dim]."""

    axes = 3
