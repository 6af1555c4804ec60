# SPDX-License-Identifier: Apache-2.0
"""Functions of single elements, and reductions, that the exporter lacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from polyop._aten.table import REFUSED, WRONG, decomposes

aten = torch.ops.aten


def _promoted(self: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    dtype = torch.result_type(self, other)
    self, other = torch.broadcast_tensors(self, other)
    return self.to(dtype), other.to(dtype)


def _ignoring_nan(choose: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Any]:
    def call(self: Tensor, other: Tensor) -> Any:
        self, other = _promoted(self, other)
        if not self.dtype.is_floating_point:
            return choose(self, other)
        return torch.where(self.isnan(), other, torch.where(other.isnan(), self, choose(self, other)))

    return call


decomposes("aten::fmax")(_ignoring_nan(torch.maximum))
decomposes("aten::fmin")(_ignoring_nan(torch.minimum))


def is_negative(x: Tensor) -> Tensor:
    """Returns True for negative numbers and for -0."""
    return x + 1 / x < 0 if x.dtype.is_floating_point else x < 0


# polyop's special_binary computes these functions of pairs; the functions of its nodes are their forms in standard
# operators, whose names end in _formula.


_VARIANTS = (
    "hypot", "nextafter", "copysign", "fmod", "logaddexp", "xlogy", "atan2", "chebyshev_t", "chebyshev_u",
    "chebyshev_v", "chebyshev_w",
)  # fmt: skip
"""In the order of special_binary's elementary functions."""


def pair_by_node(name: str, self: Tensor, other: Tensor, dtype: torch.dtype) -> Any:
    node = dtype if dtype == torch.float64 else torch.float32
    self, other = torch.broadcast_tensors(self.to(node), other.to(node))
    variant = _VARIANTS.index(name)
    result = torch.ops.polyop.special_binary.default(self, other, function="elementary", variant=variant)
    return result.to(dtype)


@decomposes("aten::gcd", nodes=("gcd",))
def gcd(self: Tensor, other: Tensor) -> Any:
    return torch.ops.polyop.gcd.default(*_promoted(self, other))


@decomposes("aten::lcm", nodes=("gcd",))
def lcm(self: Tensor, other: Tensor) -> Any:
    self, other = _promoted(self, other)
    dtype = self.dtype
    if dtype != torch.int64:  # products of small integers are rounded to the type at the end
        self, other = self.to(torch.int32), other.to(torch.int32)
    divisor = torch.ops.polyop.gcd.default(self, other)
    quotient = torch.div(self, torch.where(divisor == 0, 1, divisor), rounding_mode="trunc")
    return (quotient * other).abs().to(dtype)


def copysign_formula(self: Tensor, other: Tensor) -> Tensor:
    size = self.abs()
    return torch.where(is_negative(other), -size, size)


@decomposes("aten::copysign.Tensor", nodes=("special_binary",))
def copysign(self: Tensor, other: Tensor) -> Any:
    dtype = torch.result_type(self, other)
    return pair_by_node("copysign", self, other, dtype if dtype.is_floating_point else torch.get_default_dtype())


@decomposes("aten::copysign.Scalar")
def copysign_scalar(self: Tensor, other: Any) -> Any:
    dtype = self.dtype if self.dtype.is_floating_point else torch.get_default_dtype()
    size = self.to(dtype).abs()
    return -size if str(float(other)).startswith("-") else size


@decomposes("aten::signbit", without=WRONG, when="-0")
def signbit(self: Tensor) -> Any:
    return is_negative(self) if self.dtype.is_floating_point else NotImplemented


def hypot_formula(self: Tensor, other: Tensor) -> Tensor:
    a, b = self.abs(), other.abs()
    long, short = torch.maximum(a, b), torch.minimum(a, b)
    ratio = torch.where(long == 0, torch.zeros_like(long), short / long)
    finite = long * torch.sqrt(1 + ratio * ratio)
    infinite = torch.full_like(long, torch.inf)
    return torch.where((a == torch.inf) | (b == torch.inf), infinite, finite)


@decomposes("aten::hypot", nodes=("special_binary",))
def hypot(self: Tensor, other: Tensor) -> Any:
    return pair_by_node("hypot", self, other, torch.result_type(self, other))


def power_of_two(exponent: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Returns two numbers whose product is 2 ** exponent: one alone may overflow or underflow."""
    half = torch.floor(exponent / 2)
    return torch.exp2(half).to(dtype), torch.exp2(exponent - half).to(dtype)


def split(x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the mantissa, from 1/2 to 1, and the exponent of finite numbers."""
    size = torch.where(x == 0, torch.ones_like(x), x.abs())
    exponent = torch.floor(torch.log2(size)) + 1
    for _ in range(2):  # log2 is rounded
        a, b = power_of_two(-exponent, x.dtype)
        mantissa = size * a * b
        exponent = exponent + (mantissa >= 1).to(x.dtype) - (mantissa < 0.5).to(x.dtype)
    a, b = power_of_two(-exponent, x.dtype)
    mantissa = torch.where(x < 0, -size, size) * a * b
    none = x == 0
    return torch.where(none, x, mantissa), torch.where(none, torch.zeros_like(x), exponent)


@decomposes("aten::frexp.Tensor")
def frexp(self: Tensor) -> Any:
    odd = self.isnan() | self.isinf()
    mantissa, exponent = split(torch.where(odd, torch.ones_like(self), self))
    exponent = torch.where(odd, torch.zeros_like(exponent), exponent)
    return torch.where(odd, self, mantissa), exponent.to(torch.int32)


def _next_float(x: Tensor, other: Tensor) -> Tensor:
    """Moves by more than half of the distance to the neighbour, and by less than one and a half, and rounds."""
    wide = x.to(torch.float64)
    step = (wide.abs() * (1.0001 * 2.0**-24)).clamp(min=2.0**-149)
    moved = torch.where(other > x, wide + step, wide - step).to(torch.float32)
    largest = torch.full_like(x, torch.finfo(torch.float32).max)
    moved = torch.where(x.isinf(), torch.where(x > 0, largest, -largest), moved)
    return torch.where((x == other) | other.isnan(), other, moved)


def nextafter_formula(self: Tensor, other: Tensor) -> Tensor:
    if self.dtype == torch.float32:
        return _next_float(self, other)
    info, bits = torch.finfo(self.dtype), 53
    smallest = info.tiny * info.eps
    top = torch.full_like(self, info.max)
    finite = torch.where(self.isnan() | self.isinf(), torch.ones_like(self), self)
    mantissa, exponent = split(finite)
    up = other > self
    # At a power of two the numbers below it are twice as dense.
    inwards = (finite > 0) != up
    dense = inwards & (mantissa.abs() == 0.5)
    a, b = power_of_two(exponent - bits - dense.to(self.dtype), self.dtype)
    spacing = (a * b).clamp(min=smallest)
    spacing = torch.where(finite == 0, torch.full_like(self, smallest), spacing)
    moved = torch.where(up, finite + spacing, finite - spacing)
    moved = torch.where(self.isinf(), torch.where(self > 0, top, -top), moved)
    moved = torch.where(self == other, other, moved)
    return torch.where(self.isnan() | other.isnan(), torch.full_like(self, torch.nan), moved)


@decomposes("aten::nextafter", nodes=("special_binary",))
def nextafter(self: Tensor, other: Tensor) -> Any:
    dtype = torch.result_type(self, other)
    return pair_by_node("nextafter", self, other, dtype) if dtype in (torch.float32, torch.float64) else NotImplemented


def _over_all(reduce: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    def call(self: Tensor, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
        if self.dim() == 0:
            return self.clone()
        if len(dim):
            return NotImplemented
        result = reduce(self)
        return result.reshape([1] * self.dim()) if keepdim else result

    return call


decomposes("aten::amax", when="without dim, or of a number")(_over_all(torch.max))
decomposes("aten::amin", when="without dim, or of a number")(_over_all(torch.min))


@decomposes("aten::_is_all_true")
def is_all_true(self: Tensor) -> Tensor:
    return self.all()


@decomposes("aten::_is_any_true")
def is_any_true(self: Tensor) -> Tensor:
    return self.any()


def xlogy_formula(self: Tensor, other: Tensor) -> Tensor:
    product = torch.where(self == 0, torch.zeros_like(self), self * torch.log(other))
    return torch.where(other.isnan(), other, product)


def _distance(self: Tensor, other: Tensor) -> Tensor:
    """Returns the absolute difference, which is 0 for equal infinities."""
    return torch.where(self == other, torch.zeros_like(self), (self - other).abs())


def logaddexp_formula(self: Tensor, other: Tensor) -> Tensor:
    return torch.maximum(self, other) + torch.log1p(torch.exp(-_distance(self, other)))


def atan2_formula(self: Tensor, other: Tensor) -> Tensor:
    size, other_size = self.abs(), other.abs()
    long, short = torch.maximum(size, other_size), torch.minimum(size, other_size)
    ratio = torch.where((long == 0) | (short == long), (long != 0).to(long.dtype), short / long)  # also of infinities
    angle = torch.atan(torch.where(long.isnan(), long, ratio))
    angle = torch.where(size > other_size, math.pi / 2 - angle, angle)
    angle = torch.where(is_negative(other), math.pi - angle, angle)
    return torch.where(is_negative(self), -angle, angle)


def _real_by_node(name: str) -> Callable[..., Any]:
    def call(self: Tensor, other: Tensor) -> Any:
        dtype = torch.result_type(self, other)
        return pair_by_node(name, self, other, dtype) if dtype.is_floating_point else NotImplemented

    return call


decomposes("aten::xlogy.Tensor", without=WRONG, when="0 and an infinity or NaN", nodes=("special_binary",))(
    _real_by_node("xlogy")
)
decomposes("aten::logaddexp", without=WRONG, when="exponentials that overflow or underflow", nodes=("special_binary",))(
    _real_by_node("logaddexp")
)


@decomposes("aten::logaddexp2", without=WRONG, when="powers that overflow or underflow")
def logaddexp2(self: Tensor, other: Tensor) -> Any:
    dtype = torch.result_type(self, other)
    wide = torch.promote_types(dtype, torch.float32)
    a, b = self.to(wide), other.to(wide)
    return (torch.maximum(a, b) + torch.log1p(torch.exp2(-_distance(a, b))) / math.log(2)).to(dtype)


decomposes("aten::atan2", without=WRONG, when="0 and a negative number, infinities or NaN", nodes=("special_binary",))(
    _real_by_node("atan2")
)


@decomposes("aten::log_sigmoid", without=WRONG, when="exponentials that underflow")
def log_sigmoid(self: Tensor) -> Any:
    return self.clamp(max=0) - torch.log1p(torch.exp(-self.abs()))


def _of_a_size(target: str) -> Callable[..., Any]:
    op = getattr(aten, target)

    def call(self: Tensor, other: Any) -> Any:
        if not isinstance(other, torch.SymInt):
            return NotImplemented
        return op.Tensor(self, aten.scalar_tensor(other, dtype=self.dtype, device=self.device))

    return call


decomposes("aten::fmod.Scalar", when="a size that is not constant")(_of_a_size("fmod"))


_SMALL = "booleans and integers of 8 or 16 bits"  # ONNX Runtime's Where lacks them


@decomposes("aten::where.self", without=REFUSED, when=_SMALL)
def where(condition: Tensor, self: Tensor, other: Tensor) -> Any:
    dtype = torch.result_type(self, other)
    if dtype == torch.bool:
        return (self & condition) | (other & ~condition)
    if dtype not in (torch.int8, torch.int16):
        return NotImplemented
    return torch.where(condition, self.to(torch.int32), other.to(torch.int32)).to(dtype)


@decomposes("aten::masked_fill.Scalar", "aten::masked_fill.Tensor", without=REFUSED, when=_SMALL)
def masked_fill(self: Tensor, mask: Tensor, value: Any) -> Any:
    if self.dtype not in (torch.bool, torch.int8, torch.int16):
        return NotImplemented
    filled = value if isinstance(value, Tensor) else aten.scalar_tensor(value, device=self.device)
    return torch.where(mask, filled.to(self.dtype), self)
