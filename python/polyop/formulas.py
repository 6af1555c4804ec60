"""The operators' formulas: what an operator computes, in torch's own operators, or in ONNX's.

A formula is the file <op>_formula.py beside the operator's kernel; built, all lie beside the libraries, and are the
modules of this package. A file defines

    formula(*inputs, **attributes)   what the operator computes, in torch: for autograd, for compilers, and traced for a
                                     model-local function; None is an input that was left out
    example(call, **attributes)      inputs that formula() can be traced with; their sizes do not matter, for what is
                                     traced holds for all
    body(call, **attributes)         the statements of a model-local function in ONNX's text, from inputs to outputs by
                                     their names in the first signature, where standard operators say it better; None:
                                     not for this call. A number may be a Reference: write it as `name: float = {x!r}`.
                                     Where it is always there, example() may be missing
    DIFFERENTIABLE                   the inputs that have gradients; none if it is not there

Attributes are those of the definition, by its names, enumerations by their words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from polyop import _library
from polyop.packages import packages

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

__path__ = [str(_library("formulas"))]


class NoBodyError(ValueError):
    """There is no function for a call like this; the text says why."""


class Reference:
    """A number that differs between the nodes of a file: written into a body's text, it stands for a node's own."""

    def __init__(self, attribute: str) -> None:
        self._attribute = attribute

    def __repr__(self) -> str:
        return f"@{self._attribute}"


@dataclass(frozen=True)
class Call:
    """What a function's body may depend on beside the attributes."""

    opset: int
    """Version of ONNX's own operators in the model."""
    inputs: tuple[str, ...]
    """Names, one by one, of the inputs that are not left out."""
    ranks: tuple[int | None, ...] = ()
    """Of each input; None where it is left out, not known, or not the same in all nodes."""

    def has(self, name: str) -> bool:
        return name in self.inputs

    def rank(self, i: int) -> int:
        """Of an input without which no body can be made."""
        rank = self.ranks[i]
        if rank is None:
            raise NoBodyError(
                f"the rank of input {i} must be known, and the same in all of the file's nodes of this name"
            )
        return rank


def find(operator: str, package: str = "polyop") -> ModuleType | None:
    """The formula of an operator, polyop's or a package's, or None if it has none."""
    if package == "polyop":
        if not _library(f"formulas/{operator}_formula.py").is_file():
            return None
        return import_module(f"{__name__}.{operator}_formula")
    folder = next(p.folder for p in packages() if p.name == package)
    return _of_file(folder / "formulas" / f"{operator}_formula.py", f"{__name__}.{package}.{operator}_formula")


@cache
def _of_file(file: Path, name: str) -> ModuleType | None:
    """A package's formula: its name may be that of one of polyop's."""
    if not file.is_file():
        return None
    spec = spec_from_file_location(name, file)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def decompositions() -> dict[torch._ops.OpOverload, Callable]:
    """What each operator that has a formula in torch is made of: a table for `ExportedProgram.run_decompositions` and
    for compilers. A program that was taken apart needs polyop no longer, and is slower."""
    from polyop._torch import ALL_OPERATORS

    table = {}
    for operator in ALL_OPERATORS:
        module = find(operator.name, operator.namespace)
        if module is not None and hasattr(module, "formula"):
            table[operator.overload] = operator.through(module.formula)
    return table
