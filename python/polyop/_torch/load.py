# SPDX-License-Identifier: Apache-2.0
"""Registers polyop's operators and those of packages with PyTorch, with their gradients, and tells the ONNX exporters.

The import of this module does that, once per process.
"""

from __future__ import annotations

from polyop._base.packages import find_formula
from polyop._torch.autocast import register_autocast
from polyop._torch.exporters import tell_exporters
from polyop._torch.gradients import register_gradient
from polyop._torch.operators import ALL_OPERATORS

for _operator in ALL_OPERATORS:
    register_autocast(_operator)
    _formula = find_formula(_operator.name, _operator.namespace)
    if _formula is not None and hasattr(_formula, "DIFFERENTIABLE"):
        register_gradient(_operator, _formula.formula, _formula.DIFFERENTIABLE)

tell_exporters()
