# SPDX-License-Identifier: Apache-2.0
"""Tensors of one number that a program computes from sizes, such as `torch.ceil(n_as_tensor / 2).long()`.

While PyTorch captures a program, it does not know values of tensors: a padding by this number, or a slice up to it,
would have a new size, of which nothing is known. Here the number is also an expression of the sizes, as long as
it is rational. A tensor of float32 has the same number after rounding to an integer if the numerator is below 2**24;
products with numbers such as 0.1 do not, and have no expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.functional_tensor import FunctionalTensor

_KEY = "polyop_number"
Rational = tuple[Any, Any]
"""The numerator and the denominator, which is positive."""


def _add(a: Rational, b: Rational) -> Rational:
    return (a[0] * b[1] + b[0] * a[1], a[1] * b[1])


def _multiply(a: Rational, b: Rational) -> Rational:
    return (a[0] * b[0], a[1] * b[1])


def _divide(a: Rational, b: Rational) -> Rational | None:
    return (a[0] * b[1], a[1] * b[0]) if isinstance(b[0], int) and b[0] > 0 else None


def _negate(a: Rational) -> Rational:
    return (-a[0], a[1])


def _floor(a: Rational) -> Rational:
    return (a[0] // a[1], 1)


def _ceil(a: Rational) -> Rational:
    return ((a[0] + a[1] - 1) // a[1], 1)


def _floor_divide(a: Rational, b: Rational) -> Rational | None:
    quotient = _divide(a, b)
    return quotient and _floor(quotient)


def _same(a: Rational) -> Rational:
    return a


def _integer(a: Rational) -> Rational:
    if isinstance(a[1], int) and a[1] == 1:
        return a
    return (torch.sym_max(a[0], 0) // a[1] - torch.sym_max(-a[0], 0) // a[1], 1)


def _converted(a: Rational, dtype: Any) -> Rational | None:
    wide = {torch.int64: _integer, torch.int32: _integer, torch.float32: _same, torch.float64: _same}
    return wide[dtype](a) if dtype in wide else None


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "add": _add, "radd": _add, "sub": lambda a, b: _add(a, _negate(b)), "rsub": lambda a, b: _add(b, _negate(a)),
    "mul": _multiply, "rmul": _multiply, "div": _divide, "truediv": _divide, "true_divide": _divide,
    "rtruediv": lambda a, b: _divide(b, a), "rdiv": lambda a, b: _divide(b, a), "floordiv": _floor_divide,
    "floor_divide": _floor_divide, "neg": _negate, "ceil": _ceil, "floor": _floor, "long": _integer, "int": _integer,
    "float": _same, "double": _same, "to": _converted, "as_tensor": _same, "clone": _same, "detach": _same,
}  # fmt: skip
"""By the names of PyTorch's functions, without underscores."""


def _known(tensor: Any) -> Rational | None:
    number, version = getattr(tensor, _KEY, (None, None))
    return number if number is not None and version == tensor._version else None


def integer_in(tensor: Tensor) -> Any:
    """Returns the number of an integer tensor as an expression of sizes; None if that is not known."""
    number = None if tensor.is_floating_point() else _known(tensor)
    return None if number is None else number[0]


def _operand(value: Any) -> Any:
    """Returns the rational number of a number or a tensor of one; None if it is not known."""
    if isinstance(value, torch.dtype):
        return value
    if isinstance(value, Tensor) and value.dim() == 0:
        if (number := _known(value)) is not None:
            return number
        inner = torch._from_functional_tensor(value.elem) if isinstance(value, FunctionalTensor) else value
        constant = getattr(inner, "constant", None)
        value = None if constant is None or constant.is_complex() else constant.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return (value, 1) if isinstance(value, (int, torch.SymInt)) else None


def without_tensors(args: Any) -> Any:
    """Returns arguments in which integers, such as a padding and the end of a slice, are no tensors."""
    if isinstance(args, slice):
        return slice(*(without_tensors(part) for part in (args.start, args.stop, args.step)))
    if type(args) in (list, tuple):
        return type(args)(without_tensors(part) for part in args)
    if type(args) is dict:
        return {name: without_tensors(part) for name, part in args.items()}
    number = integer_in(args) if isinstance(args, Tensor) else None
    return args if number is None else number


def of_sizes(function: Callable[..., Any], args: Sequence[Any], given: Mapping[str, Any]) -> Rational | None:
    """Returns the number that a function of PyTorch computes; None if it is none that depends on sizes alone."""
    operation = _OPERATIONS.get(getattr(function, "__name__", "").strip("_"))
    if operation is None or not args or len(args) > 2 or given:
        return None
    numbers = [_operand(arg) for arg in args]
    if None in numbers or not any(isinstance(n, tuple) and isinstance(n[0], torch.SymInt) for n in numbers):
        return None
    return operation(*numbers)


def noted(tensor: Tensor, number: Rational) -> Tensor:
    """Notes the number of a tensor."""
    setattr(tensor, _KEY, (number, tensor._version))
    return tensor
