"""The table of decompositions: operators as torch's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from polyop._torch.operators import ALL_OPERATORS
from polyop.formulas import find


def decompositions() -> dict[torch._ops.OpOverload, Callable[..., Any]]:
    """Returns the formula of each operator that has one, as a function that is called like the operator."""
    modules = ((operator, find(operator.name, operator.namespace)) for operator in ALL_OPERATORS)
    return {
        operator.overload: operator.through(module.formula)
        for operator, module in modules
        if module is not None and hasattr(module, "formula")
    }
