# SPDX-License-Identifier: Apache-2.0
"""Scans: cumulative products, sums of exponentials, maxima and minima."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from polyop._aten.table import WRONG, decomposes

_SCANNED = frozenset((torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64))
_MULTIPLIED = _SCANNED | {torch.float64}
# A scan of n elements has log2(n) steps. Where n is only known when the file runs, there are as many steps as an index
# of 31 bits can need; a step that reaches beyond the beginning changes nothing.
_MAX_STEPS = 31


def scan(parts: tuple[Tensor, ...], dim: int, combine: Callable[..., tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Returns the inclusive scan along `dim` by an associative function of (earlier parts, later parts)."""
    size = parts[0].shape[dim]
    steps = max(0, size - 1).bit_length() if isinstance(size, int) else _MAX_STEPS
    at = torch.arange(size, device=parts[0].device)
    shape = [1] * parts[0].dim()
    shape[dim] = -1
    for step in range(steps):
        before = at - (1 << step)
        exists = (before >= 0).reshape(shape)
        earlier = tuple(part.index_select(dim, before.clamp(min=0)) for part in parts)
        both = combine(*earlier, *parts)
        parts = tuple(torch.where(exists, new, old) for new, old in zip(both, parts, strict=True))
    return parts


@decomposes("aten::cumprod", nodes=("cumulative",))
def cumprod(self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    if dtype is None:
        dtype = self.dtype if self.dtype.is_floating_point or self.dtype.is_complex else torch.int64
    if dtype.is_complex:
        self = self.to(dtype)
        return self.clone() if self.dim() == 0 else scan((self,), dim, lambda a, b: (a * b,))[0]
    wide = self.to(dtype if dtype in _MULTIPLIED else torch.int64)  # of which smaller integers are the last bits
    return torch.ops.polyop.cumulative.default(wide, axis=dim, mode="prod").to(dtype)


@decomposes(
    "aten::logcumsumexp", without=WRONG, when="values that differ by more than some 80", nodes=("special_binary",)
)
def logcumsumexp(self: Tensor, dim: int) -> Any:
    """Adds pairs relative to the larger one; the exporter's form is relative to the largest of all, next to which
    sums of smaller elements vanish."""
    if self.dtype.is_complex:
        return NotImplemented
    if self.dim() == 0:
        return self.clone()
    wide = self.to(torch.promote_types(self.dtype, torch.float32))
    return scan((wide,), dim, lambda a, b: (torch.logaddexp(a, b),))[0].to(self.dtype)


def _greater_or_nan(earlier: Tensor, i: Tensor, later: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
    take = (later >= earlier) | later.isnan() if later.dtype.is_floating_point else later >= earlier
    return torch.where(take, later, earlier), torch.where(take, j, i)


def _less_or_nan(earlier: Tensor, i: Tensor, later: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
    take = (later <= earlier) | later.isnan() if later.dtype.is_floating_point else later <= earlier
    return torch.where(take, later, earlier), torch.where(take, j, i)


def _extremes(mode: str, combine: Callable[..., tuple[Tensor, ...]]) -> Callable[..., Any]:
    def call(self: Tensor, dim: int) -> Any:
        if self.dim() == 0:
            return self.clone(), torch.zeros([], dtype=torch.int64, device=self.device)
        if self.dtype in _SCANNED:
            return torch.ops.polyop.cummax.default(self, dim=dim, mode=mode)
        wide = self.to(torch.int32) if not self.dtype.is_floating_point else self
        if wide.dtype in _SCANNED:
            values, indices = torch.ops.polyop.cummax.default(wide, dim=dim, mode=mode)
            return values.to(self.dtype), indices
        shape = [1] * self.dim()
        shape[dim] = -1
        at = torch.arange(self.shape[dim], device=self.device).reshape(shape).expand(self.shape)
        return scan((self, at), dim, combine)

    return call


decomposes("aten::cummax", nodes=("cummax",))(_extremes("max", _greater_or_nan))
decomposes("aten::cummin", nodes=("cummax",))(_extremes("min", _less_or_nan))
