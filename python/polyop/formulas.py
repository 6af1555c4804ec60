# SPDX-License-Identifier: Apache-2.0
"""The operators' formulas: what an operator computes, written with torch's own operators or with ONNX's.

A formula is the file <op>_formula.py next to the operator's kernel. The build puts all of them next to the libraries,
where they are the modules of this package. A file defines

    formula(*inputs, **attributes)   computes the operator in torch: for autograd, for compilers, and traced for a
                                     model-local function. An omitted input is None
    example(call, **attributes)      returns inputs for tracing formula(); their sizes do not matter, because the traced
                                     graph holds for all sizes
    body(call, **attributes)         returns the statements of a model-local function in ONNX's text syntax, from inputs
                                     to outputs by their names in the first signature, where standard operators express
                                     it better; None if not for this call. A number may be a Reference: write it as
                                     `name: float = {x!r}`. example() may be missing if body() never returns None
    DIFFERENTIABLE                   the indices of the inputs with gradients; missing if there are none

Attributes have the definition's names; enumerations are words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polyop._base.extents import floor_scale as floor_scale
from polyop._base.libraries import find_library
from polyop._base.packages import find_formula
from polyop.errors import PolyopError

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

__path__ = [str(find_library("formulas"))]
find = find_formula


class NoBodyError(PolyopError, ValueError):
    """An operator has no function for a call; the message gives the reason."""


class Reference:
    """A number that differs between the nodes of a file. In a body's text it refers to the node's attribute."""

    def __init__(self, attribute: str) -> None:
        self._attribute = attribute

    def __repr__(self) -> str:
        return f"@{self._attribute}"


@dataclass(frozen=True)
class Call:
    """What a function's body may depend on in addition to the attributes."""

    opset: int
    """The model's version of ONNX's own operators."""
    inputs: tuple[str, ...]
    """The names of the inputs that are present, one by one."""
    ranks: tuple[int | None, ...] = ()
    """The rank of each input; None if it is omitted, unknown, or not the same in all nodes."""

    def has(self, name: str) -> bool:
        return name in self.inputs

    def rank(self, i: int) -> int:
        """Returns the rank of input `i`. Raises NoBodyError if it is not known."""
        rank = self.ranks[i]
        if rank is None:
            raise NoBodyError(f"input {i}: expected a known rank that is the same in all nodes of this name")
        return rank


def decompositions() -> dict[torch._ops.OpOverload, Callable[..., Any]]:
    """Returns the formula of each operator that has one in torch: a table for `ExportedProgram.run_decompositions` and
    for compilers. A decomposed program does not need polyop, and is slower."""
    from polyop._torch.operators import ALL_OPERATORS

    modules = ((operator, find(operator.name, operator.namespace)) for operator in ALL_OPERATORS)
    return {
        operator.overload: operator.through(module.formula)
        for operator, module in modules
        if module is not None and hasattr(module, "formula")
    }
