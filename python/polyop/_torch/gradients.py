"""Gradients of the differentiable operators.

Each operator has a formula in torch's own operators, which autograd differentiates: it computes the same as the forward
kernel, for any floating-point type. Where an operator has a gradient kernel for the tensors' device, the backward pass
calls it instead, and the formula serves for the second derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from polyop._torch.operators import Operator

Tensors = list[Tensor | None]


@dataclass(frozen=True)
class _Formula:
    """The formula of an operator, and the gradients that autograd finds for it."""

    formula: Callable[..., Any]
    differentiable: Sequence[int]
    """The indices of the inputs that have gradients."""

    def gradients(
        self, inputs: Tensors, attributes: dict[str, Any], grads: Sequence[Tensor | None], requested: Sequence[int],
        *, create_graph: bool = False,
    ) -> Tensors:  # fmt: skip
        """Returns the gradients of the requested inputs. Those must require a gradient."""
        outputs = self.formula(*inputs, **attributes)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [  # indices have no gradient
            (output, grad)
            for output, grad in zip(outputs, grads, strict=True)
            if output.requires_grad and grad is not None
        ]
        if not pairs:
            return [None] * len(requested)
        return list(
            torch.autograd.grad(
                [output for output, _ in pairs],
                [inputs[i] for i in requested],
                [grad for _, grad in pairs],
                create_graph=create_graph,
                allow_unused=True,
            )
        )


def register_gradient(operator: Operator, formula: Callable[..., Any], differentiable: Sequence[int]) -> None:
    """Registers the gradients of the inputs with these indices: by the gradient kernel, else by the formula."""
    rule = _Formula(formula, differentiable)
    kernel = None if operator.gradient is None else _GradientKernel(operator, operator.gradient)

    # PyTorch omits keyword_only_inputs if the operator has no attributes.
    def setup_context(ctx: Any, inputs: tuple, output: Any, keyword_only_inputs: dict[str, Any] | None = None) -> None:
        outputs = (output,) if isinstance(output, Tensor) else output
        ctx.num_inputs = len(inputs)
        ctx.save_for_backward(*inputs, *(() if kernel is None else (outputs[o] for o in kernel.saved_outputs)))
        ctx.attributes = operator.values(keyword_only_inputs or {})

    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        inputs, outputs = ctx.saved_tensors[: ctx.num_inputs], ctx.saved_tensors[ctx.num_inputs :]
        requested = [i for i in differentiable if inputs[i] is not None and ctx.needs_input_grad[i]]
        result: Tensors = [None] * len(inputs)
        if not requested:  # only inputs without gradients, such as boxes, require one
            return tuple(result)
        if kernel is not None and kernel.computes(requested, inputs):
            found = kernel.call(inputs, outputs, grads, requested, ctx.attributes)
        else:
            with torch.enable_grad():
                leaves = [None if t is None else t.detach() for t in inputs]
                for i in requested:
                    leaves[i].requires_grad_()
                found = rule.gradients(leaves, ctx.attributes, grads, requested)
        for i, grad in zip(requested, found, strict=True):
            result[i] = grad
        return tuple(result)

    torch.library.register_autograd(f"{operator.namespace}::{operator.name}", backward, setup_context=setup_context)
    if kernel is not None:
        kernel.register_second_derivative(rule)


class _GradientKernel:
    """Calls the gradient of an operator: an operator whose inputs and outputs are known by their names."""

    def __init__(self, operator: Operator, gradient: Operator) -> None:
        self.operator, self.gradient = operator, gradient
        names = [spec.name for spec in operator.inputs]
        self._grad_of = {f"grad_{name}": o for o, name in enumerate(operator.outputs_named)}
        self._input_of = {name: i for i, name in enumerate(names)}
        self.saved_outputs = [
            operator.outputs_named.index(spec.name)
            for spec in gradient.inputs
            if spec.name not in self._grad_of and spec.name not in self._input_of
        ]
        self._computed = [names.index(name.removeprefix("grad_")) for name in gradient.outputs_named]

    def computes(self, requested: Sequence[int], inputs: Sequence[Tensor | None]) -> bool:
        """Returns true if there is a kernel for these gradients on the tensors' device."""
        device = next(t for t in inputs if t is not None).device.type
        return set(requested) <= set(self._computed) and device in self.gradient.devices

    def call(
        self, inputs: Sequence[Tensor | None], saved_outputs: Sequence[Tensor], grads: Sequence[Tensor | None],
        requested: Sequence[int], attributes: dict[str, Any],
    ) -> Tensors:  # fmt: skip
        """Returns the gradients of the requested inputs."""
        outputs = iter(saved_outputs)
        args = [
            grads[self._grad_of[spec.name]]
            if spec.name in self._grad_of
            else inputs[self._input_of[spec.name]]
            if spec.name in self._input_of
            else next(outputs)
            for spec in self.gradient.inputs
        ]
        mask = sum(1 << o for o, i in enumerate(self._computed) if i in requested)
        result = self.gradient.overload(*args, **attributes, output_mask=mask)
        result = (result,) if isinstance(result, Tensor) else result
        return [result[self._computed.index(i)] for i in requested]

    def register_second_derivative(self, rule: _Formula) -> None:
        """Registers the gradient of the gradient, which autograd finds for the formula."""
        gradient = self.gradient

        def setup_context(ctx: Any, inputs: tuple, output: Any, keyword_only_inputs: dict[str, Any]) -> None:
            ctx.save_for_backward(*inputs)
            ctx.attributes = gradient.values(keyword_only_inputs)

        def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
            attributes = dict(ctx.attributes)
            mask = attributes.pop("output_mask")
            with torch.enable_grad():
                leaves = [
                    t.detach().requires_grad_(t.is_floating_point()) if t is not None else None
                    for t in ctx.saved_tensors
                ]
                named = {spec.name: leaf for spec, leaf in zip(gradient.inputs, leaves, strict=True)}
                inputs = [named.get(spec.name) for spec in self.operator.inputs]
                requested = [i for o, i in enumerate(self._computed) if mask >> o & 1]
                for i in requested:
                    if inputs[i] is None:  # a bias, say: its gradient does not depend on its value
                        inputs[i] = torch.zeros_like(grads[self._computed.index(i)]).requires_grad_()
                output_grads = [named.get(f"grad_{name}") for name in self.operator.outputs_named]
                first = rule.gradients(inputs, attributes, output_grads, requested, create_graph=True)
                given = [grads[self._computed.index(i)] for i in requested]
                pairs = [(f, g) for f, g in zip(first, given, strict=True) if f is not None and f.requires_grad]
                needed = [i for i, leaf in enumerate(leaves) if leaf is not None and ctx.needs_input_grad[i]]
                result: Tensors = [None] * len(leaves)
                if pairs and needed:
                    second = torch.autograd.grad(
                        [f for f, _ in pairs], [leaves[i] for i in needed], [g for _, g in pairs], allow_unused=True
                    )
                    for i, grad in zip(needed, second, strict=True):
                        result[i] = grad
            return tuple(result)

        torch.library.register_autograd(f"{gradient.namespace}::{gradient.name}", backward, setup_context=setup_context)
