"""Neighborhood attention as layers."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from polyop.compat.natten import functional

__all__ = ["NeighborhoodAttention1D", "NeighborhoodAttention2D", "NeighborhoodAttention3D"]


class _NeighborhoodAttention(nn.Module):
    """Projects tokens [N, …, embed_dim] to queries, keys and values, and the result back."""

    axes = 0

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        is_causal: bool | Sequence[bool] = False,
        qkv_bias: bool = True,
        qk_scale: float | None = None,
        proj_drop: float = 0.0,
    ) -> None:
        super().__init__()
        self.num_heads, self.scale = num_heads, qk_scale
        self.arguments = (kernel_size, stride, dilation, is_causal)
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)
        self.proj_drop = nn.Dropout(proj_drop)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).unbind(-3)
        attend = getattr(functional, f"na{self.axes}d")
        return self.proj_drop(self.proj(attend(query, key, value, *self.arguments, scale=self.scale).flatten(-2)))


class NeighborhoodAttention1D(_NeighborhoodAttention):
    """For sequences [N, L, embed_dim]."""

    axes = 1


class NeighborhoodAttention2D(_NeighborhoodAttention):
    """For images [N, H, W, embed_dim]."""

    axes = 2


class NeighborhoodAttention3D(_NeighborhoodAttention):
    """For volumes [N, D, H, W, embed_dim]."""

    axes = 3
