"""Which function of `mmcv._ext` is carried out by what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch
from torch import Tensor

__all__ = ["FUNCTIONS", "Provided", "gradients", "provides"]


@dataclass(frozen=True)
class Provided:
    """A function as `mmcv._ext` has it, and polyop's operators that it calls; none: torch's own do it."""

    call: Callable[..., Any]
    operators: tuple[str, ...]

    def missing(self) -> list[str]:
        """The operators that this build of the library lacks."""
        return [name for name in self.operators if not hasattr(torch.ops.polyop, name)]


FUNCTIONS: dict[str, Provided] = {}


def provides(*operators: str) -> Callable[..., Callable[..., Any]]:
    """Takes a function in under its name, or another. Its arguments have the names and the order of `mmcv._ext`; outputs that MMCV
    allocates are written in place."""

    def register(function: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
        name = name or function.__name__

        @wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            if missing := provided.missing():
                raise NotImplementedError(
                    f"mmcv._ext.{name} needs polyop's operator {missing[0]}, which this build lacks"
                )
            with torch.no_grad():
                return function(*args, **given)

        provided = FUNCTIONS[name] = Provided(call, operators)
        return call

    return register


def gradients(forward: Callable[..., Tensor], inputs: Sequence[Tensor], grad_output: Tensor) -> tuple[Tensor, ...]:
    """The gradients of the inputs of forward(*inputs)."""
    with torch.enable_grad():
        leaves = [t.detach().requires_grad_() for t in inputs]
        return torch.autograd.grad(forward(*leaves), leaves, grad_output)
