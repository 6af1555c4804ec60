# SPDX-License-Identifier: Apache-2.0
"""Functions of complex numbers, by those of real numbers. On a branch cut the sign of a zero decides, as in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from polyop._aten.complex_numbers import adds
from polyop._aten.real_forms import both_parts, joined, parts
from polyop._aten.table import overload


def _root(real: Tensor, imaginary: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the parts of the square root."""
    magnitude = torch.abs(joined(real, imaginary))
    # The larger part is exact; the other one follows from it, without cancellation.
    larger = torch.sqrt(magnitude / 2 + real.abs() / 2)
    smaller = torch.where(larger > 0, imaginary.abs() / (2 * larger), torch.zeros_like(larger))
    first, second = torch.where(real >= 0, larger, smaller), torch.where(real >= 0, smaller, larger)
    return first, torch.where(torch.signbit(imaginary), -second, second)


@adds("aten::sqrt")
def sqrt(self: Tensor) -> Any:
    return joined(*_root(*parts(self)))


@adds("aten::rsqrt")
def rsqrt(self: Tensor) -> Any:
    return torch.reciprocal(torch.sqrt(self))


@adds("aten::log2")
def log2(self: Tensor) -> Any:
    return torch.log(self) * (1 / math.log(2))


@adds("aten::log10")
def log10(self: Tensor) -> Any:
    return torch.log(self) * (1 / math.log(10))


@adds("aten::exp2")
def exp2(self: Tensor) -> Any:
    return torch.exp(self * math.log(2))


@adds("aten::expm1")
def expm1(self: Tensor) -> Any:
    real, imaginary = parts(self)
    half = torch.sin(imaginary / 2)
    return joined(torch.expm1(real) * torch.cos(imaginary) - 2 * half * half, torch.exp(real) * torch.sin(imaginary))


@adds("aten::log1p")
def log1p(self: Tensor) -> Any:
    real, imaginary = parts(self)
    near = torch.log1p(real * (2 + real) + imaginary * imaginary) / 2
    far = torch.log(torch.abs(joined(1 + real, imaginary)))
    small = (real.abs() < 0.5) & (imaginary.abs() < 0.5)
    return joined(torch.where(small, near, far), torch.atan2(imaginary, 1 + real))


def _times_i(z: Tensor) -> Tensor:
    real, imaginary = parts(z)
    return joined(-imaginary, real)


def _over_i(z: Tensor) -> Tensor:
    real, imaginary = parts(z)
    return joined(imaginary, -real)


@adds("aten::tan")
def tan(self: Tensor) -> Any:
    return _over_i(torch.tanh(_times_i(self)))


# The inverse functions are those of W. Kahan, "Branch cuts for complex elementary functions", 1987.


def _two_roots(z: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Returns the square roots of 1 - z and of 1 + z."""
    real, imaginary = parts(z)
    return _root(1 - real, -imaginary), _root(1 + real, imaginary)


@adds("aten::acos")
def acos(self: Tensor) -> Any:
    (a, b), (c, d) = _two_roots(self)
    return joined(2 * torch.atan2(a, c), torch.asinh(c * b - d * a))


@adds("aten::asin")
def asin(self: Tensor) -> Any:
    (a, b), (c, d) = _two_roots(self)
    return joined(torch.atan2(parts(self)[0], a * c - b * d), torch.asinh(a * d - b * c))


@adds("aten::asinh")
def asinh(self: Tensor) -> Any:
    return _over_i(torch.asin(_times_i(self)))


@adds("aten::acosh")
def acosh(self: Tensor) -> Any:
    real, imaginary = parts(self)
    (a, b), (c, d) = _root(real - 1, imaginary), _root(real + 1, imaginary)
    return joined(torch.asinh(a * c + b * d), 2 * torch.atan2(b, c))


@adds("aten::atanh")
def atanh(self: Tensor) -> Any:
    real, imaginary = parts(self)
    below, square = 1 - real, imaginary * imaginary
    angle = torch.atan2(2 * imaginary, below * (1 + real) - square)
    return joined(torch.log1p(4 * real / (below * below + square)) / 4, angle / 2)


@adds("aten::atan")
def atan(self: Tensor) -> Any:
    return _over_i(torch.atanh(_times_i(self)))


@adds("aten::sinc")
def sinc(self: Tensor) -> Any:
    angle = self * math.pi
    zero = self == 0
    real, imaginary = parts(torch.sin(angle) / torch.where(zero, torch.ones_like(self), angle))
    return joined(torch.where(zero, torch.ones_like(real), real), imaginary)


def _number(value: Any, like: Tensor) -> Tensor:
    value = complex(value)
    has_fraction = like.dtype.is_complex or like.dtype.is_floating_point
    dtype = like.dtype.to_real() if has_fraction else torch.get_default_dtype()
    real = torch.full([], value.real, dtype=dtype, device=like.device)
    return joined(real, torch.full_like(real, value.imag))


@adds("aten::pow.Scalar")
def power_of_number(self: Any, exponent: Tensor) -> Any:
    return torch.pow(_number(self, exponent), exponent)


@adds("aten::mul.Scalar")
def times_number(self: Tensor, other: Any) -> Any:
    return self * _number(other, self)


def _of_one_type(target: str) -> None:
    """Real and complex operands: PyTorch's exporter would convert them by an operator that has no ONNX form."""
    op = overload(target)
    assert op is not None

    def call(self: Any, other: Any, **given: Any) -> Any:
        dtype = torch.result_type(self, other)
        like = self if isinstance(self, Tensor) else other
        pair = [x if isinstance(x, Tensor) else _number(x, like) for x in (self, other)]
        if not dtype.is_complex or all(x.dtype == dtype for x in pair):
            return NotImplemented
        return op(*(x.to(dtype) for x in pair), **given)

    adds(target)(call)


for _name in ("add", "sub", "mul", "div"):
    _of_one_type(f"aten::{_name}.Tensor")


@adds("aten::full")
def full(
    size: Sequence[int], fill_value: Any, *, dtype: torch.dtype | None = None, device: Any = None, **given: Any
) -> Any:
    dtype = dtype or torch.complex64
    if not dtype.is_complex:
        return NotImplemented
    parts_of_value = complex(fill_value).real, complex(fill_value).imag
    return joined(*(torch.full(size, part, dtype=dtype.to_real(), device=device) for part in parts_of_value))


@adds("aten::where.ScalarSelf")
def where_number(condition: Tensor, self: Any, other: Tensor) -> Any:
    return torch.where(condition, _number(self, other), other)


@adds("aten::where.ScalarOther")
def where_other_number(condition: Tensor, self: Tensor, other: Any) -> Any:
    return torch.where(condition, self, _number(other, self))


@adds("aten::full_like")
def full_like(self: Tensor, fill_value: Any, *, dtype: torch.dtype | None = None, **given: Any) -> Any:
    if dtype is not None and not dtype.is_complex:
        return NotImplemented
    like = both_parts(self)[0] if dtype in (None, self.dtype) else parts(self.to(dtype))[0]
    return joined(*(torch.full_like(like, part) for part in (complex(fill_value).real, complex(fill_value).imag)))


@adds("aten::logical_or")
def logical_or(self: Tensor, other: Tensor) -> Any:
    return (self != 0) | (other != 0)


@adds("aten::isclose")
def isclose(self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    distance = torch.abs(self - other)
    close = (self == other) | (torch.isfinite(distance) & (distance <= atol + rtol * torch.abs(other)))
    return close | (torch.isnan(self) & torch.isnan(other)) if equal_nan else close
