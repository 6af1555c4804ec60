# SPDX-License-Identifier: Apache-2.0
"""Small calls of the differentiable operators, which ops/*/*/cases.py state."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import torch
from benchmark import Case, cases

from polyop import formulas
from polyop._torch.operators import OPERATORS

DIFFERENTIABLE = {
    name: module.DIFFERENTIABLE
    for name in OPERATORS
    if (module := formulas.find(name)) is not None and hasattr(module, "DIFFERENTIABLE")
}


def _prepared(case: Case) -> tuple[dict[str, Any], list[torch.Tensor]]:
    torch.manual_seed(0)
    return case.make()


# A call of each operator that has a gradient: attributes and tensors.
CASES = {case.title: _prepared(case) for case in cases("small")}
small_rois = import_module("ops.rois.cases").small_rois

# The sizes of their outputs depend on data.
SIZED_BY_VALUES = {"dynamic_scatter", "indice_conv", "indice_conv-subm", "cubic_resize", "dynamic_resize"}


def operator_of(name: str) -> str:
    return name.split("-")[0]


def call(name: str, tensors: Sequence[torch.Tensor]) -> Any:
    """Calls the operator of a case with these tensors. The last ones may be those of a variadic input."""
    operator = OPERATORS[operator_of(name)]
    return operator.overload(*operator.nest(tensors), **CASES[name][0])


def has_gradient(name: str) -> list[bool]:
    """Returns for each tensor of a case whether it has a gradient."""
    operator = OPERATORS[operator_of(name)]
    return [operator.input_of(i) in DIFFERENTIABLE[operator.name] for i in range(len(CASES[name][1]))]


def differentiable(name: str) -> list[int]:
    """Returns the indices of a case's tensors that have gradients."""
    return [i for i, has in enumerate(has_gradient(name)) if has]
