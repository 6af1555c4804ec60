"""Gradients of the differentiable operators: each has a formula in torch's own operators, which torch differentiates.

A formula is what the forward kernel computes, for any floating type. It runs in the backward pass alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from polyop import formulas
from polyop._torch import ALL_OPERATORS, Operator


def _register(operator: Operator, formula: Callable[..., Any], differentiable: Sequence[int]) -> None:
    # PyTorch leaves keyword_only_inputs out where the operator has no attributes.
    def setup_context(ctx: Any, inputs: tuple, output: Any, keyword_only_inputs: dict[str, Any] | None = None) -> None:
        ctx.save_for_backward(*inputs)
        ctx.attributes = operator.values(keyword_only_inputs or {})

    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        with torch.enable_grad():
            leaves = [None if t is None else t.detach() for t in ctx.saved_tensors]
            wanted = [i for i in differentiable if leaves[i] is not None and ctx.needs_input_grad[i]]
            if not wanted:  # by boxes alone, say: they have none
                return (None,) * len(leaves)
            for i in wanted:
                leaves[i].requires_grad_()
            outputs = formula(*leaves, **ctx.attributes)
            outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
            pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if o.requires_grad]  # indices have no gradient
            made = torch.autograd.grad([o for o, _ in pairs], [leaves[i] for i in wanted], [g for _, g in pairs])
        of_inputs: list[Tensor | None] = [None] * len(leaves)
        for i, g in zip(wanted, made, strict=True):
            of_inputs[i] = g
        return tuple(of_inputs)

    torch.library.register_autograd(f"{operator.namespace}::{operator.name}", backward, setup_context=setup_context)


for _operator in ALL_OPERATORS:
    _module = formulas.find(_operator.name, _operator.namespace)
    if _module is not None and hasattr(_module, "DIFFERENTIABLE"):
        _register(_operator, _module.formula, _module.DIFFERENTIABLE)
