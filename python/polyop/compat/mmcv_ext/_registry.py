# SPDX-License-Identifier: Apache-2.0
"""The registry of the functions of `mmcv._ext`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from polyop._torch.gradients import RULES

__all__ = ["FUNCTIONS", "Provided", "gradients", "gradients_of", "provides", "result_of"]


@dataclass(frozen=True)
class Provided:
    """A function of `mmcv._ext`, and polyop's operators that it calls; none if it only uses torch's own."""

    call: Callable[..., Any]
    operators: tuple[str, ...]

    def missing(self) -> list[str]:
        """Returns the operators that this build of the library lacks."""
        return [name for name in self.operators if not hasattr(torch.ops.polyop, name)]


FUNCTIONS: dict[str, Provided] = {}


def provides(*operators: str) -> Callable[..., Callable[..., Any]]:
    """Registers a function under its name or another one. It has the argument names and order of `mmcv._ext`, and
    writes into outputs that MMCV allocates."""

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


def result_of(operator: str, *inputs: Tensor, **attributes: Any) -> Tensor:
    """Returns the output of an operator, and for f64, which kernels lack, that of its formula."""
    if inputs[0].dtype != torch.float64:
        return getattr(torch.ops.polyop, operator)(*inputs, **attributes)
    rule = RULES[f"polyop::{operator}"]
    return rule.formula(*inputs, **rule.operator.values(attributes))


def gradients_of(
    operator: str,
    inputs: Sequence[Tensor | None],
    grad_output: Tensor,
    requested: Sequence[int],
    *saved_outputs: Tensor,
    **attributes: Any,
) -> list[Tensor | None]:
    """Returns the gradients of the requested inputs of an operator, by its gradient kernel. Calls no forward kernel."""
    rule = RULES[f"polyop::{operator}"]
    grads = [grad_output, *[None] * (rule.operator.num_outputs - 1)]
    return rule.gradients(inputs, saved_outputs, grads, requested, rule.operator.values(attributes))


def gradients(forward: Callable[..., Tensor], inputs: Sequence[Tensor], grad_output: Tensor) -> tuple[Tensor, ...]:
    """Returns the gradients of the inputs of forward(*inputs)."""
    with torch.enable_grad():
        leaves = [t.detach().requires_grad_() for t in inputs]
        return torch.autograd.grad(forward(*leaves), leaves, grad_output)
