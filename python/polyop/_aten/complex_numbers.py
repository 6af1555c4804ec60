# SPDX-License-Identifier: Apache-2.0
"""Complex numbers: the exporter writes them as pairs of real numbers, for few of PyTorch's operators.

Imported after the modules of real numbers: a real call is left to the translation that the operator has.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from polyop._aten.real_forms import both_parts, joined, parts
from polyop._aten.table import WRONG, decomposes, extend, overload

aten = torch.ops.aten

_WHEN = "complex numbers"
_REAL_TYPE = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}


def is_complex(leaf: Any) -> bool:
    dtype = leaf.dtype if isinstance(leaf, Tensor) else leaf
    return isinstance(dtype, complex) or (isinstance(dtype, torch.dtype) and dtype.is_complex)


def adds(*targets: str, nodes: tuple[str, ...] = ()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the decorated function for calls with complex tensors or types; other calls keep their translation.

    nodes: polyop's operators that it uses.
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        def make(before: Callable[..., Any] | None) -> Callable[..., Any]:
            def call(*args: Any, **given: Any) -> Any:
                if any(is_complex(leaf) for leaf in pytree.tree_leaves((args, given))):
                    return function(*args, **given)
                return NotImplemented if before is None else before(*args, **given)

            return call

        for target in targets:
            extend(target, _WHEN, make, nodes=nodes)
        return function

    return add


# ---- operators that treat both parts alike ---------------------------------------------------------


def _part(value: Any, at: int) -> Any:
    """Returns a part of an argument. Integers and booleans are indices, sizes and masks, the same for both parts."""
    if isinstance(value, Tensor) and (value.dtype.is_complex or value.dtype.is_floating_point):
        if value.dtype.is_complex:
            return parts(value)[at]
        return value if at == 0 else torch.zeros_like(value)
    if isinstance(value, (complex, float)):
        return (value.real, value.imag)[at]
    return _REAL_TYPE.get(value, value) if isinstance(value, torch.dtype) else value


_OF_PARTS = (
    "alias", "unsqueeze", "squeeze", "squeeze.dim", "squeeze.dims", "select.int", "split.Tensor", "split_with_sizes", "unbind.int",
    "index.Tensor", "index_select", "gather", "scatter.src", "scatter_add", "index_put", "slice_scatter",
    "select_scatter", "masked_scatter", "where.self", "expand", "repeat", "tril", "triu", "diagonal", "cumsum", "zeros_like", "tile", "unfold", "im2col",
    "sum", "sum.dim_IntList", "mean", "mean.dim", "rand_like", "sum_to_size",
)  # fmt: skip


def _by_parts(target: str) -> None:
    op = overload(target)
    if op is None:
        return

    def call(*args: Any, **given: Any) -> Any:
        if isinstance(given.get("dtype"), torch.dtype) and not given["dtype"].is_complex:
            return NotImplemented
        real, imaginary = (op(*(_part(a, at) for a in args), **_mapped(given, at)) for at in (0, 1))
        if isinstance(real, Tensor):
            return joined(real, imaginary)
        return [joined(a, b) for a, b in zip(real, imaginary, strict=True)]

    adds(target)(call)


def _mapped(given: dict[str, Any], at: int) -> dict[str, Any]:
    return {name: _part(value, at) for name, value in given.items()}


for _name in _OF_PARTS:
    _by_parts(f"aten::{_name}")


@adds("aten::_to_copy")
def to_copy(self: Tensor, *, dtype: torch.dtype | None = None, **given: Any) -> Any:
    if dtype is None or dtype == self.dtype:
        return self.clone()
    if dtype == torch.bool:
        real, imaginary = parts(self)
        return (real != 0) | (imaginary != 0)
    if not dtype.is_complex:
        return parts(self)[0].to(dtype)
    return joined(*(part.to(_REAL_TYPE[dtype]) for part in both_parts(self)))


@adds("aten::copy")
def copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Any:
    if not self.dtype.is_complex:
        return NotImplemented
    converted = (part.to(_REAL_TYPE[self.dtype]) for part in both_parts(src))
    return joined(*(part.expand(self.shape).clone() for part in converted))


@adds("aten::zeros")
def zeros(size: Sequence[int], *, dtype: torch.dtype, device: Any = None, **given: Any) -> Any:
    part = torch.zeros(size, dtype=_REAL_TYPE[dtype], device=device)
    return joined(part, part)


@adds("aten::ones")
def ones(size: Sequence[int], *, dtype: torch.dtype, device: Any = None, **given: Any) -> Any:
    part = torch.ones(size, dtype=_REAL_TYPE[dtype], device=device)
    return joined(part, torch.zeros_like(part))


@adds("prims::empty_strided", "aten::empty_strided")
def empty_strided(size: Sequence[int], stride: Any, *, dtype: torch.dtype, device: Any = None, **given: Any) -> Any:
    return zeros(size, dtype=dtype, device=device)


@adds("aten::empty.memory_format")
def empty(size: Sequence[int], *, dtype: torch.dtype, device: Any = None, **given: Any) -> Any:
    return zeros(size, dtype=dtype, device=device)


@adds("aten::randn_like")
def randn_like(self: Tensor, **given: Any) -> Any:
    return joined(*(torch.randn_like(part) * 0.5**0.5 for part in parts(self)))


@adds("prims::normal")
def normal(shape: Sequence[int], *, mean: Any, std: Any, dtype: torch.dtype, device: Any, **given: Any) -> Any:
    part = torch.zeros(shape, dtype=_REAL_TYPE[dtype], device=device)
    return joined(
        *(torch.randn_like(part) * (std * 0.5**0.5) + part_of_mean for part_of_mean in (mean.real, mean.imag))
    )


@adds("aten::type_as")
def type_as(self: Tensor, other: Tensor) -> Any:
    return self.to(other.dtype)


@adds("aten::nonzero")
def nonzero(self: Tensor) -> Any:
    return torch.nonzero(self != 0)


def _of_real_part(op: Any) -> Callable[..., Any]:
    return lambda self, dim, dtype: op(parts(self)[0].to(dtype), dim)


for _name in ("softmax", "log_softmax"):
    adds(f"aten::{_name}.int")(_of_real_part(getattr(torch, _name)))


def _deviation(op: Any) -> Callable[..., Any]:
    """The variance is the sum of those of both parts."""

    def call(self: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
        dim = list(range(self.dim())) if dim is None else dim  # the exporter takes no None for the mean
        result: Any = sum(torch.var(part, dim, correction=correction, keepdim=keepdim) for part in parts(self))
        result = result.sqrt() if "std" in op else result
        return (result, self.mean(dim, keepdim=keepdim)) if "mean" in op else result

    return call


for _name in ("var", "std", "var_mean", "std_mean"):
    adds(f"aten::{_name}.correction")(_deviation(_name))


def _at_least(rank: int) -> Callable[..., Any]:
    def call(tensors: Sequence[Tensor]) -> Any:
        return [_ranked(x, rank) for x in tensors]

    return call


def _ranked(x: Tensor, rank: int) -> Tensor:
    if x.dim() == 0:
        return x.reshape([1] * rank)
    if x.dim() == 1 and rank > 1:
        x = x.unsqueeze(0)
    return x.unsqueeze(-1) if x.dim() == 2 and rank == 3 else x.clone()


for _rank in (1, 2, 3):
    adds(f"aten::atleast_{_rank}d.Sequence")(_at_least(_rank))
    adds(f"aten::atleast_{_rank}d")(lambda self, rank=_rank: _ranked(self, rank))


@adds("aten::as_strided")
def as_strided(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: Any = None) -> Any:
    return joined(*(aten.as_strided(part.clone(), size, stride, storage_offset) for part in parts(self)))


@adds("aten::pad")
def pad(self: Tensor, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Any:
    value = complex(0 if value is None else value)
    if mode != "constant":
        return joined(*(torch.nn.functional.pad(part, list(pad), mode) for part in parts(self)))
    real, imaginary = parts(self)
    fill = torch.nn.functional.pad
    return joined(fill(real, list(pad), value=value.real), fill(imaginary, list(pad), value=value.imag))


@adds("aten::masked_fill.Scalar")
def masked_fill(self: Tensor, mask: Tensor, value: Any) -> Any:
    real, imaginary = parts(self)
    value = complex(value)
    return joined(real.masked_fill(mask, value.real), imaginary.masked_fill(mask, value.imag))


# ---- products --------------------------------------------------------------------------------------


@adds("aten::einsum")
def einsum(equation: str, tensors: Sequence[Tensor], *, path: Any = None) -> Any:
    pairs = [parts(z) if z.dtype.is_complex else (z,) for z in tensors]
    sums: list[Any] = [None, None]
    for chosen in itertools.product(*(range(len(p)) for p in pairs)):
        power = sum(chosen)  # of the imaginary unit
        term = torch.einsum(equation, *(p[at] for p, at in zip(pairs, chosen, strict=True)))
        before = sums[power % 2]
        if power % 4 >= 2:
            sums[power % 2] = -term if before is None else before - term
        else:
            sums[power % 2] = term if before is None else before + term
    return joined(sums[0], sums[1])


@adds("aten::prod.dim_int")
def prod(self: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    size = self.shape[dim]
    if not isinstance(size, int) or size == 0 or dtype not in (None, self.dtype):
        return NotImplemented
    factors = [self.select(dim, i) for i in range(size)]
    result = factors[0]
    for factor in factors[1:]:
        result = result * factor
    return result.unsqueeze(dim) if keepdim else result


@adds("aten::linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    result = torch.matmul(input, weight.mT)
    return result if bias is None else result + bias


@adds("aten::mm", "aten::bmm", "aten::mv", "aten::dot")
def product(self: Tensor, mat2: Tensor) -> Any:
    return torch.matmul(self, mat2)


@adds("aten::square")
def square(self: Tensor) -> Any:
    return self * self


# ---- functions of one number -----------------------------------------------------------------------


def _polar(magnitude: Tensor, angle: Tensor) -> Tensor:
    return joined(magnitude * torch.cos(angle), magnitude * torch.sin(angle))


@adds("aten::exp")
def exp(self: Tensor) -> Any:
    real, imaginary = parts(self)
    return _polar(torch.exp(real), imaginary)


@decomposes(
    "aten::abs",
    without=WRONG,
    when=f"{_WHEN} whose squares overflow, or with infinite parts",
    nodes=("special_binary",),
)
def absolute(self: Tensor) -> Any:
    return torch.hypot(*parts(self)) if self.dtype.is_complex else NotImplemented


def _angle(z: Tensor) -> Tensor:
    real, imaginary = parts(z)
    return torch.atan2(imaginary, real)


@decomposes("aten::angle", without=WRONG, when=f"{_WHEN} with infinite parts, NaN or 0", nodes=("special_binary",))
def angle(self: Tensor) -> Any:
    return _angle(self) if self.dtype.is_complex else NotImplemented


@adds("aten::log")
def log(self: Tensor) -> Any:
    return joined(torch.log(torch.abs(self)), _angle(self))


_MAX_PRODUCTS = 8


@adds("aten::pow.Tensor_Scalar")
def power(self: Tensor, exponent: Any) -> Any:
    if isinstance(exponent, (int, float)) and exponent == int(exponent) and abs(exponent) <= _MAX_PRODUCTS:
        if exponent == 0:
            one = torch.ones_like(parts(self)[0])
            return joined(one, torch.zeros_like(one))
        result = self
        for _ in range(abs(int(exponent)) - 1):
            result = result * self
        return torch.reciprocal(result) if exponent < 0 else result
    if isinstance(exponent, complex):
        return torch.exp(torch.log(self) * exponent)
    return _polar(torch.pow(torch.abs(self), exponent), _angle(self) * exponent)


@adds("aten::pow.Tensor_Tensor")
def power_of_tensor(self: Tensor, exponent: Tensor) -> Any:
    base = self if self.dtype.is_complex else joined(self, torch.zeros_like(self))
    return torch.exp(torch.log(base) * exponent)


@adds("aten::sin")
def sin(self: Tensor) -> Any:
    real, imaginary = parts(self)
    return joined(torch.sin(real) * torch.cosh(imaginary), torch.cos(real) * torch.sinh(imaginary))


@adds("aten::cos")
def cos(self: Tensor) -> Any:
    real, imaginary = parts(self)
    return joined(torch.cos(real) * torch.cosh(imaginary), -torch.sin(real) * torch.sinh(imaginary))


@adds("aten::sinh")
def sinh(self: Tensor) -> Any:
    real, imaginary = parts(self)
    return joined(torch.sinh(real) * torch.cos(imaginary), torch.cosh(real) * torch.sin(imaginary))


@adds("aten::cosh")
def cosh(self: Tensor) -> Any:
    real, imaginary = parts(self)
    return joined(torch.cosh(real) * torch.cos(imaginary), torch.sinh(real) * torch.sin(imaginary))


@adds("aten::tanh")
def tanh(self: Tensor) -> Any:
    real, imaginary = parts(self)
    t, s, c = torch.tanh(real), torch.sin(imaginary), torch.cos(imaginary)
    # 1 / cosh(x)^2 is 1 - tanh(x)^2: no term overflows for a large x.
    rest = 1 - t * t
    scale = c * c + t * t * s * s
    return joined(t / scale, rest * s * c / scale)


@adds("aten::sigmoid")
def sigmoid(self: Tensor) -> Any:
    return torch.tanh(self * 0.5) * 0.5 + 0.5


@adds("aten::sgn")
def sgn(self: Tensor) -> Any:
    magnitude = torch.abs(self)
    return joined(*(torch.where(magnitude == 0, part, part / magnitude) for part in parts(self)))


@adds("aten::silu")
def silu(self: Tensor) -> Any:
    return self * sigmoid(self)


# ---- comparisons -----------------------------------------------------------------------------------


def _both(left: Any, right: Any) -> tuple[Tensor, Tensor]:
    tensors = [part for value in (left, right) for part in (_part(value, 0), _part(value, 1))]
    return tensors[0] == tensors[2], tensors[1] == tensors[3]


@adds("aten::eq.Tensor", "aten::eq.Scalar")
def equal(self: Tensor, other: Any) -> Any:
    real, imaginary = _both(self, complex(other) if isinstance(other, (int, float)) else other)
    return real & imaginary


@adds("aten::ne.Tensor", "aten::ne.Scalar")
def not_equal(self: Tensor, other: Any) -> Any:
    return ~equal(self, other)


@adds("aten::isnan")
def isnan(self: Tensor) -> Any:
    real, imaginary = parts(self)
    return torch.isnan(real) | torch.isnan(imaginary)


@adds("aten::isinf")
def isinf(self: Tensor) -> Any:
    real, imaginary = parts(self)
    return torch.isinf(real) | torch.isinf(imaginary)


@adds("aten::isfinite")
def isfinite(self: Tensor) -> Any:
    real, imaginary = parts(self)
    return torch.isfinite(real) & torch.isfinite(imaginary)
