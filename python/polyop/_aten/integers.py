# SPDX-License-Identifier: Apache-2.0
"""`int` and `len` of tensors and sizes while PyTorch captures a program, such as in `int(index.max()) + 1` and in
`int(math.ceil(x.shape[1] / 4))`.

Python's functions return nothing but integers: the capture stops if a value is not known, and a dynamic size becomes
constant. The capture then starts again, and the module that called the function gets a global of this name, which
returns a symbol.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from polyop._aten.guards import causes, is_pytorchs


class UnknownIntegerError(Exception):
    """A program called `int` or `len` with a tensor, and the result is not known."""

    def __init__(self, function: str, names: dict[str, Any]) -> None:
        """`names`: the globals of the module that called it."""
        super().__init__(f"the result of {function} is not known")
        self.function, self.names = function, names


class _LikeInt(type):
    """Makes a class what `int` is, but for its calls."""

    def __call__(cls, value: Any = 0, *args: Any, **given: Any) -> Any:
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            return torch.sym_int(value)
        return value.to(torch.int64).item() if isinstance(value, Tensor) else int(value, *args, **given)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, int)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, int)

    def __eq__(cls, other: object) -> bool:
        return other is int or other is cls

    def __hash__(cls) -> int:
        return hash(int)

    def __getattr__(cls, name: str) -> Any:
        return getattr(int, name)


class _Int(metaclass=_LikeInt):
    """Replaces `int` in modules."""


def _len(value: Any) -> Any:
    return value.shape[0] if isinstance(value, Tensor) and value.dim() > 0 else len(value)


_REPLACEMENTS: dict[str, Any] = {"int": _Int, "len": _len}


def integer_of(value: Tensor) -> int:
    """Replaces Tensor.__int__. Raises UnknownIntegerError if the value is not known."""
    try:
        return Tensor.__int__(value)
    except (GuardOnDataDependentSymNode, DataDependentOutputException):
        _require("int")
        raise


def length_of(value: Tensor) -> int:
    """Replaces Tensor.__len__. Raises UnknownIntegerError if the size is not constant."""
    if value.dim() > 0 and not isinstance(value.shape[0], int):
        _require("len")
    return Tensor.__len__(value)


def _require(function: str) -> None:
    """Raises UnknownIntegerError if the program outside of PyTorch calls the function, and not its replacement."""
    users = (f for f, _ in traceback.walk_stack(sys._getframe(2)) if not is_pytorchs(f.f_code.co_filename))
    frame = next(users, None)
    if frame is not None and function in frame.f_code.co_names and function not in frame.f_globals:
        raise UnknownIntegerError(function, frame.f_globals)


class SymbolicIntegers(ExitStack):
    """A context manager that leaves the modules as they were."""

    _sizes: bool | None = False
    """Whether an `int` of a size is a symbol; None if the program needs an integer, such as for the key of a cache."""

    def of_size(self, convert: Callable[[torch.SymInt], int], size: torch.SymInt) -> int:
        """Replaces SymInt.__int__. Raises UnknownIntegerError if the size is not constant."""
        if self._sizes is not None and size.node.maybe_as_int() is None:
            try:
                _require("int")
            except UnknownIntegerError:
                self._sizes = True
                raise
        return convert(size)

    def add(self, error: BaseException) -> bool:
        """Gives the module of an UnknownIntegerError its function; takes the functions back, if the error is another
        one. Returns False if there is nothing to change."""
        cause = next((c for c in causes(error) if isinstance(c, UnknownIntegerError)), None)
        if cause is not None and cause.function not in cause.names:
            cause.names[cause.function] = _REPLACEMENTS[cause.function]
            self.callback(cause.names.pop, cause.function, None)
            return True
        if self._sizes:
            self.close()
            self._sizes = None
            return True
        return False
