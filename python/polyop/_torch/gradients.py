# SPDX-License-Identifier: Apache-2.0
"""Gradients of the differentiable operators.

Each operator has a formula in torch's own operators, which can be differentiated: it computes the same as the forward
kernel, for any floating-point type. Where an operator has a gradient kernel for the tensors' device, the backward pass
calls it instead, and the formula serves for the second derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from polyop._torch.transforms import are_active, register_transforms

if TYPE_CHECKING:
    from polyop._torch.operators import Operator

Tensors = Sequence[Tensor | None]

_kernels_enabled = True


@contextmanager
def without_gradient_kernels() -> Iterator[None]:
    """In a `with` block, formulas compute all gradients. For comparisons; it affects all threads."""
    global _kernels_enabled
    before, _kernels_enabled = _kernels_enabled, False
    try:
        yield
    finally:
        _kernels_enabled = before


def as_tuple(result: Any) -> tuple[Tensor, ...]:
    return (result,) if isinstance(result, Tensor) else tuple(result)


class _WithGradients(torch.autograd.Function):
    """A scalar with given gradients of given tensors: with_gradients(*tensors, *gradients).

    torch.autograd.grad(tensors, inputs, gradients) imports a package of symbolic mathematics, which takes a second.
    """

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors[len(tensors) // 2 :])
        return tensors[0].new_zeros(())

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        return (*gradients, *[None] * len(gradients))


def differentiate(
    function: Callable[[list[Tensor | None]], Any], inputs: Tensors, grads: Tensors, requested: Sequence[int]
) -> list[Tensor | None]:
    """Returns the gradients of the requested inputs for the gradients of the outputs of function(inputs).

    An output without floating-point values has no gradient. The result is differentiable if gradients are enabled or a
    transform of torch.func is active.
    """
    cotangents = [grad for grad in grads if grad is not None and grad.is_floating_point()]

    def outputs_of(*given: Tensor) -> tuple[Tensor, ...]:
        complete = list(inputs)
        for i, tensor in zip(requested, given, strict=True):
            complete[i] = tensor
        outputs = as_tuple(function(complete))
        return tuple(o for o, g in zip(outputs, grads, strict=True) if g is not None and g.is_floating_point())

    chosen = [tensor for i in requested if (tensor := inputs[i]) is not None]
    if are_active():
        _, pullback = torch.func.vjp(outputs_of, *chosen)  # type: ignore[misc]  # a third result with has_aux
        return list(pullback(tuple(cotangents)))
    differentiable = torch.is_grad_enabled()
    with torch.enable_grad():
        leaves = [t.view_as(t) if differentiable and t.requires_grad else t.detach().requires_grad_() for t in chosen]
        pairs = [(o, g) for o, g in zip(outputs_of(*leaves), cotangents, strict=True) if o.requires_grad]
        if not pairs:
            return [None] * len(requested)
        scalar = _WithGradients.apply(*(o for o, _ in pairs), *(g for _, g in pairs))
        return list(torch.autograd.grad(scalar, leaves, create_graph=differentiable, allow_unused=True))


@dataclass(frozen=True)
class Rule:
    """Computes the gradients of an operator: by the gradient kernel, else by the formula."""

    operator: Operator
    formula: Callable[..., Any]
    """Computes the outputs from all inputs and attributes."""
    differentiable: Sequence[int]
    """The indices of the inputs that have gradients. Elsewhere the tensors of a variadic input have one index each."""
    kernel: GradientKernel | None = None

    @property
    def saved_outputs(self) -> list[int]:
        """The indices of the outputs that `gradients` needs."""
        return [] if self.kernel is None else self.kernel.saved_outputs

    def gradients(
        self, inputs: Tensors, outputs: Tensors, grads: Tensors, requested: Sequence[int], attributes: dict[str, Any]
    ) -> list[Tensor | None]:
        """Returns the gradients of the requested inputs. `outputs` are the saved ones."""
        if self.kernel is not None and self.kernel.computes(requested, inputs):
            return self.kernel.call(inputs, outputs, grads, requested, attributes)
        return differentiate(lambda given: self.formula(*given, **attributes), inputs, grads, requested)

    def backward(
        self, inputs: Tensors, outputs: Tensors, grads: Tensors, needed: Sequence[bool], attributes: dict[str, Any]
    ) -> list[Tensor | None]:
        """Returns the gradient of each input; None for those that are not needed or have none, such as boxes."""
        result: list[Tensor | None] = [None] * len(inputs)
        requested = [
            i
            for i, tensor in enumerate(inputs)
            if tensor is not None and needed[i] and self.operator.input_of(i) in self.differentiable
        ]
        if requested:
            found = self.gradients(inputs, outputs, grads, requested, attributes)
            for i, grad in zip(requested, found, strict=True):
                result[i] = grad
        return result


def _of_rank(grad: Tensor, input: Tensor | None) -> Tensor:
    """Returns the gradient with the input's rank: a tensor of shape [1] is accepted as a scalar."""
    return grad if input is None or grad.dim() == input.dim() else grad.reshape(input.shape)


class GradientKernel:
    """Calls the gradient of an operator: an operator whose inputs and outputs are known by their names.

    The gradients of a variadic input are one tensor of one dimension.
    """

    def __init__(self, operator: Operator, gradient: Operator) -> None:
        self.operator, self.gradient = operator, gradient
        names = [spec.name for spec in operator.inputs]
        given = [f"grad_{name}" for name in operator.outputs_named] + names
        saved = [spec.name for spec in gradient.inputs if spec.name not in given]
        self.saved_outputs = [operator.outputs_named.index(name) for name in saved]
        self._arguments = [(given + saved).index(spec.name) for spec in gradient.inputs]
        self._computed = [names.index(name.removeprefix("grad_")) for name in gradient.outputs_named]

    def computes(self, requested: Sequence[int], inputs: Tensors) -> bool:
        """Returns true if a kernel on the tensors' device computes these gradients, and may be called.

        Under torch.use_deterministic_algorithms(True), also with warn_only, a kernel whose sums depend on the order of
        threads is not called. The formula consists of torch's operators, which then are deterministic or raise torch's
        error or warning.
        """
        device = next(t for t in inputs if t is not None).device.type
        deterministic = torch.are_deterministic_algorithms_enabled()
        allowed = _kernels_enabled and not (deterministic and device in self.gradient.nondeterministic_devices)
        computed = all(self.operator.input_of(i) in self._computed for i in requested)
        return allowed and computed and device in self.gradient.devices

    def call(
        self,
        inputs: Tensors,
        saved_outputs: Tensors,
        grads: Tensors,
        requested: Sequence[int],
        attributes: dict[str, Any],
    ) -> list[Tensor | None]:
        """Returns the gradients of the requested inputs."""
        given = (*grads, *self.operator.nest(inputs), *saved_outputs)
        args = [given[i] for i in self._arguments]
        positions = [self._computed.index(self.operator.input_of(i)) for i in requested]
        attributes = {**attributes, "output_mask": sum(1 << o for o in set(positions))}
        # Without a second derivative, the autograd kernel would only take time: more than a small gradient.
        differentiable = torch.is_grad_enabled() or are_active()
        with nullcontext() if differentiable else torch._C._AutoDispatchBelowAutograd():
            result = as_tuple(self.gradient.overload(*args, **attributes))
        return [self._of_tensor(i, inputs, result[o]) for i, o in zip(requested, positions, strict=True)]

    def _of_tensor(self, index: int, inputs: Tensors, gradient: Tensor) -> Tensor:
        """Returns the gradient of one tensor; `gradient` is that of its input."""
        first = self.operator.input_of(index)
        tensor = inputs[index]
        if tensor is None or not self.operator.inputs[first].variadic:
            return _of_rank(gradient, tensor)
        start = sum(t.numel() for t in inputs[first:index] if t is not None)
        return gradient.narrow(0, start, tensor.numel()).view(tensor.shape)

    def rule(self, forward: Rule) -> Rule:
        """Returns the rule of the gradient itself: its formula is the gradient of the operator's formula."""
        names = [spec.name for spec in self.gradient.inputs]
        grad_names = [f"grad_{name}" for name in self.operator.outputs_named]

        def formula(*args: Tensor | None, output_mask: int, **attributes: Any) -> tuple[Tensor, ...]:
            nested = self.gradient.nest(args)
            named: dict[str, Any] = dict(zip(names, nested, strict=True))
            inputs = self.operator.flatten([named.get(spec.name) for spec in self.operator.inputs])
            grads = [named.get(name) for name in grad_names]
            outputs = self.gradient.outputs(nested, {**attributes, "output_mask": output_mask}, lambda _: 0)
            device = self.gradient.device(nested)
            found: dict[int, Tensor] = {}
            for indices in self._steps(inputs, named, output_mask):
                for i in indices:
                    if inputs[i] is None:
                        dtype, shape = outputs[self._computed.index(self.operator.input_of(i))]
                        inputs[i] = torch.zeros(shape, dtype=dtype, device=device)
                gradients = differentiate(lambda full: forward.formula(*full, **attributes), inputs, grads, indices)
                for i, gradient in zip(indices, gradients, strict=True):
                    found[i] = torch.zeros_like(inputs[i]) if gradient is None else gradient
            return tuple(
                self._of_input(number, found, torch.empty(0, dtype=dtype, device=device))
                for number, (dtype, _) in zip(self._computed, outputs, strict=True)
            )

        differentiable_names = [self.operator.inputs[i].name for i in forward.differentiable] + grad_names
        differentiable = [i for i, name in enumerate(names) if name in differentiable_names]
        return Rule(self.gradient, formula, differentiable)

    def _steps(self, inputs: Tensors, named: dict[str, Any], output_mask: int) -> list[list[int]]:
        """Returns the indices of the inputs whose gradients are requested, in one or two steps.

        A missing input is replaced by zeros when its gradient is computed. No gradient depends on the value of an input
        that the gradient does not read, such as a bias. That of a missing mask does not depend on the mask's value, but
        those of the other inputs do, so that they are computed first.
        """
        computed = [i for o, i in enumerate(self._computed) if output_mask >> o & 1]
        requested = [i for i in range(len(inputs)) if self.operator.input_of(i) in computed]
        last = [i for i in requested if inputs[i] is None and self._name_of(i) in named]
        return [step for step in ([i for i in requested if i not in last], last) if step]

    def _name_of(self, index: int) -> str:
        return self.operator.inputs[self.operator.input_of(index)].name

    def _of_input(self, number: int, found: dict[int, Tensor], empty: Tensor) -> Tensor:
        """Returns the gradient of an input, of all tensors of a variadic one; `empty` if it is not requested."""
        gradients = [gradient for i, gradient in found.items() if self.operator.input_of(i) == number]
        if not gradients:
            return empty
        if self.operator.inputs[number].variadic:
            return torch.cat([gradient.flatten() for gradient in gradients])
        return gradients[0]


RULES: dict[str, Rule] = {}
"""The rules of all differentiable operators, by names such as "polyop::roi_align"."""


def register_gradient(operator: Operator, formula: Callable[..., Any], differentiable: Sequence[int]) -> None:
    """Registers the gradients of the inputs with these indices, and those of the gradient kernel."""
    kernel = None if operator.gradient is None else GradientKernel(operator, operator.gradient)
    rule = Rule(operator, formula, differentiable, kernel)
    _register(rule)
    if kernel is not None:
        _register(kernel.rule(rule))


def _register(rule: Rule) -> None:
    operator = rule.operator

    def save(ctx: Any, tensors: Tensors, given: dict[str, Any], output: Any) -> None:
        outputs = as_tuple(output)
        ctx.num_inputs = len(tensors)
        ctx.save_for_backward(*tensors, *(outputs[o] for o in rule.saved_outputs))
        ctx.attributes = operator.values(given)
        ctx.outputs = [(o.shape, o.dtype, o.device) for o in outputs]

    def backward(ctx: Any, saved: Tensors, needed: Sequence[bool], grads: Tensors) -> list[Tensor | None]:
        grads = [
            torch.zeros(shape, dtype=dtype, device=device) if grad is None and dtype.is_floating_point else grad
            for grad, (shape, dtype, device) in zip(grads, ctx.outputs, strict=True)
        ]
        inputs, outputs = saved[: ctx.num_inputs], saved[ctx.num_inputs :]
        return rule.backward(inputs, outputs, grads, needed, ctx.attributes)

    _register_autograd(operator, save, backward)
    register_transforms(operator, operator.through(rule.formula), save, backward)
    RULES[f"{operator.namespace}::{operator.name}"] = rule


def _register_autograd(operator: Operator, save: Callable[..., None], backward: Callable[..., Any]) -> None:
    """Registers what torch.library.register_autograd would register, which looks up the default values of the
    attributes in each call. That takes longer than a small kernel.
    """

    def forward(ctx: Any, keys: torch._C.DispatchKeySet, given: dict[str, Any], *tensors: Tensor | None) -> Any:
        # PyTorch would fill the gradients of all outputs that are not used with zeros, also those of indices, which
        # have none: as much memory as the indices.
        ctx.set_materialize_grads(False)
        output = below(keys, operator.nest(tensors), given)
        save(ctx, tensors, given, output)
        return output

    def backward_of(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        return (None, None, *backward(ctx, ctx.saved_tensors, ctx.needs_input_grad[2:], grads))

    # The name is part of what PyTorch prints as a result's grad_fn.
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward_of)}
    function = type(f"{operator.namespace}_{operator.name}_", (torch.autograd.Function,), methods)

    def below(keys: torch._C.DispatchKeySet, args: Sequence[Any], given: dict[str, Any]) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return operator.overload.redispatch(keys & torch._C._after_autograd_keyset, *args, **given)

    def call(keys: torch._C.DispatchKeySet, *args: Any, **given: Any) -> Any:
        if torch.is_grad_enabled() and torch._C._any_requires_grad(*args):
            return function.apply(keys, given, *operator.flatten(operator.complete(args)))  # type: ignore[attr-defined]
        return below(keys, args, given)

    operator.register(call, "Autograd", with_keyset=True)
