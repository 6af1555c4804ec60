# SPDX-License-Identifier: Apache-2.0
"""Tensors of one number that a program computes from sizes, such as `torch.ceil(torch.as_tensor(n / 2)).long()`.

While PyTorch captures a program, it does not know values of tensors: a padding by this number, or a slice up to it,
would have a size of its own, of which nothing is known. Here the number is also an expression of the sizes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.functional_tensor import FunctionalTensor

_SYMBOLS = (torch.SymInt, torch.SymFloat)
_KEY = "polyop_number"


def _converted(value: Any, dtype: Any) -> Any:
    if not isinstance(dtype, torch.dtype) or dtype.is_complex or dtype is torch.bool:
        return None
    return torch.sym_float(value) if dtype.is_floating_point else torch.sym_int(value)


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "add": operator.add, "radd": operator.add, "sub": operator.sub, "rsub": lambda a, b: b - a, "mul": operator.mul,
    "rmul": operator.mul, "div": operator.truediv, "truediv": operator.truediv, "true_divide": operator.truediv,
    "rtruediv": lambda a, b: b / a, "rdiv": lambda a, b: b / a, "floordiv": operator.floordiv, "floor_divide": operator.floordiv, "neg": operator.neg, "ceil": math.ceil,
    "floor": math.floor, "long": lambda a: _converted(a, torch.int64), "int": lambda a: _converted(a, torch.int32),
    "float": lambda a: _converted(a, torch.float32), "double": lambda a: _converted(a, torch.float64),
    "to": lambda a, dtype=None: _converted(a, dtype), "as_tensor": lambda a: a, "tensor": lambda a: a, "clone": lambda a: a,
    "detach": lambda a: a,
}  # fmt: skip
"""By the names of PyTorch's functions, without underscores."""


def number_of(tensor: Any) -> Any:
    """Returns the number of a tensor as an expression of sizes; None if that is not known."""
    number, version = getattr(tensor, _KEY, (None, None))
    return number if number is not None and version == tensor._version else None


def _operand(value: Any) -> Any:
    """Returns a number for a number or a tensor of one; None if it is not known."""
    if isinstance(value, (int, float, *_SYMBOLS)):
        return value
    if not isinstance(value, Tensor) or value.dim() > 0:
        return None
    if (number := number_of(value)) is not None:
        return number
    inner = torch._from_functional_tensor(value.elem) if isinstance(value, FunctionalTensor) else value
    constant = getattr(inner, "constant", None)
    return None if constant is None or constant.is_complex() else constant.item()


def without_numbers(args: Any) -> Any:
    """Returns arguments in which integers, such as a padding and the end of a slice, are no tensors."""
    if isinstance(args, slice):
        return slice(*(without_numbers(part) for part in (args.start, args.stop, args.step)))
    if type(args) in (list, tuple):
        return type(args)(without_numbers(part) for part in args)
    if type(args) is dict:
        return {name: without_numbers(part) for name, part in args.items()}
    number = number_of(args) if isinstance(args, Tensor) else None
    return args if number is None or args.is_floating_point() else number


def of_sizes(function: Callable[..., Any], args: Sequence[Any], given: Mapping[str, Any]) -> Any:
    """Returns the number that a function of PyTorch computes; None if it is none that depends on sizes alone."""
    name = getattr(function, "__name__", "").strip("_")
    operation = _OPERATIONS.get(name)
    if operation is None or not args or len(args) > 2 or not set(given) <= {"dtype"}:
        return None
    numbers = [arg if isinstance(arg, torch.dtype) else _operand(arg) for arg in args]
    if None in numbers or not any(isinstance(number, _SYMBOLS) for number in numbers):
        return None
    if name in ("as_tensor", "tensor"):
        return _converted(numbers[0], given["dtype"]) if given else numbers[0]
    return operation(*numbers, **given)


def noted(tensor: Tensor, number: Any) -> Tensor:
    """Notes the number of a tensor."""
    setattr(tensor, _KEY, (number, tensor._version))
    return tensor
