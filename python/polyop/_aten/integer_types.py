# SPDX-License-Identifier: Apache-2.0
"""Integers of types whose extremes and sets ONNX Runtime computes wrongly, or not at all.

On a CPU with AVX-512, its Clip, Max, Min, Relu, Sign, ReduceMax and ReduceMin take the lower 32 bits of a vector of
int64 for the number. Comparisons, Where and ArgMax are right. For int16 and booleans most of them have no kernel;
Unique has one for int8 and int64 alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from polyop._aten.table import REFUSED, WRONG, extend, first_of, overload

aten = torch.ops.aten

_WHEN = "integers of 64 or 16 bits, or booleans"
_SMALL = frozenset((torch.bool, torch.int16))


def _add(name: str, function: Callable[..., Any], when: str = _WHEN, without: str = WRONG) -> None:
    extend(f"aten::{name}", when, partial(first_of, function), without=without)


def _limited(self: Tensor, low: Any = None, high: Any = None) -> Any:
    """Limits integers; the upper limit wins, as in PyTorch. A limit may be a number or a tensor."""
    limits = [limit for limit in (low, high) if limit is not None]
    dtype = self.dtype
    for limit in limits:
        dtype = torch.promote_types(dtype, torch.result_type(self, limit))
    scalars = self.dim() == 0 and not any(isinstance(limit, Tensor) and limit.dim() > 0 for limit in limits)
    if dtype not in (torch.int16, torch.int64) or (dtype == torch.int64 and scalars):
        return NotImplemented
    wide = torch.int32 if dtype == torch.int16 else dtype

    def as_tensor(limit: Any) -> Tensor:
        if isinstance(limit, Tensor):
            return limit.to(wide)
        return aten.scalar_tensor(limit, dtype=wide, device=self.device)

    result = self.to(wide)
    if low is not None:
        low = as_tensor(low)
        result = torch.where(result < low, low, result)
    if high is not None:
        high = as_tensor(high)
        result = torch.where(result > high, high, result)
    return result.to(dtype)


for _name in ("clamp", "clamp.Tensor"):
    _add(_name, lambda self, min=None, max=None: _limited(self, min, max))
for _name in ("clamp_min", "clamp_min.Tensor", "maximum"):
    _add(_name, _limited)
for _name in ("clamp_max", "clamp_max.Tensor", "minimum"):
    _add(_name, lambda self, limit: _limited(self, None, limit))


def _sign(self: Tensor) -> Any:
    if self.dtype != torch.int64 or self.dim() == 0:
        return NotImplemented
    return (self > 0).to(torch.int64) - (self < 0).to(torch.int64)


for _name in ("sign", "sgn"):
    _add(_name, _sign, "integers of 64 bits")


# ---- along dimensions ------------------------------------------------------------------------------


def _extreme(position: Callable[..., Tensor], self: Tensor, dim: Sequence[int], keepdim: bool) -> Tensor:
    """Returns the elements at the positions of extremes along dimensions."""
    for axis in dim:
        self = self.gather(axis, position(self, axis, keepdim=True))
    return self if keepdim else self.squeeze(list(dim))


def _of_all(whole: Callable[[Tensor], Tensor], position: Callable[..., Tensor], self: Tensor) -> Any:
    if self.dtype in _SMALL:
        return whole(self.to(torch.int32)).to(self.dtype)
    if self.dtype != torch.int64 or self.dim() == 0:
        return NotImplemented
    return _extreme(position, self.reshape(-1), [0], False)


def _with_index(
    along: Callable[..., Any], position: Callable[..., Tensor], self: Tensor, dim: int, keepdim: bool = False
) -> Any:
    if self.dtype in _SMALL:
        values, index = along(self.to(torch.int32), dim, keepdim)
        return values.to(self.dtype), index
    if self.dtype != torch.int64 or self.dim() == 0:
        return NotImplemented
    index = position(self, dim, keepdim=True)
    values = self.gather(dim, index)
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


def _along(
    along: Callable[..., Tensor], position: Callable[..., Tensor], self: Tensor, dim: Sequence[int] = (),
    keepdim: bool = False,
) -> Any:  # fmt: skip
    if self.dtype in _SMALL:
        return along(self.to(torch.int32), dim, keepdim).to(self.dtype)
    if self.dtype != torch.int64 or self.dim() == 0:
        return NotImplemented
    return _extreme(position, self, dim or range(self.dim()), keepdim)


def _position(position: Callable[..., Tensor], self: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    return position(self.to(torch.int32), dim, keepdim) if self.dtype in _SMALL else NotImplemented


for _name, _at in (("max", torch.argmax), ("min", torch.argmin)):
    _add(_name, partial(_of_all, getattr(torch, _name), _at))
    _add(f"{_name}.dim", partial(_with_index, getattr(torch, _name), _at))
    _add(f"a{_name}", partial(_along, getattr(torch, f"a{_name}"), _at))
    _add(f"arg{_name}", partial(_position, _at), "integers of 16 bits", REFUSED)


# ---- sets ------------------------------------------------------------------------------------------


def _unique(name: str) -> Callable[..., Any]:
    op = overload(f"aten::{name}")
    assert op is not None

    def call(self: Tensor, *args: Any, **given: Any) -> Any:
        if self.dtype in (torch.int8, torch.int64) or self.dtype.is_floating_point or self.dtype.is_complex:
            return NotImplemented
        values, *others = op(self.to(torch.int64), *args, **given)
        return values.to(self.dtype), *others

    return call


for _name in ("_unique", "_unique2", "unique_dim"):
    _add(_name, _unique(_name), "booleans and integers of 8, 16 or 32 bits", REFUSED)
