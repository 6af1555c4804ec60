# SPDX-License-Identifier: Apache-2.0
"""The differentiable operators under the transforms of torch.func: grad, vjp, jacrev, hessian, jvp, jacfwd and vmap.

PyTorch has no rules for the operators of a library, and its own rule of an operator's autograd formula does not accept
transforms. So a kernel at the transforms' dispatch key chooses: the formula for forward derivatives, a function with
the operator's gradient for reverse derivatives, and PyTorch's loop over the batch for vmap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack
from torch._functorch.utils import unwrap_dead_wrappers

if TYPE_CHECKING:
    from polyop._torch.operators import Operator

_KEY = "FuncTorchDynamicLayerFrontMode"


def are_active() -> bool:
    """Returns true within a function that torch.func transforms."""
    return torch._C._are_functorch_transforms_active()


class _Attributes:
    """The attributes of a call. One argument of an autograd function, in which PyTorch looks for no tensors."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given


def register_transforms(
    operator: Operator,
    formula: Callable[..., Any],
    save: Callable[..., None],
    backward: Callable[..., Sequence[Tensor | None]],
) -> None:
    """Registers what transforms do with the operator. `formula` has the operator's arguments, with single tensors
    `save(context, tensors, attributes, output)` keeps what `backward(context, saved tensors, needed, gradients)` needs.
    """
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.__members__[_KEY])
    own = torch.library.get_kernel(f"{operator.namespace}::{operator.name}", _KEY)

    def loop(args: Sequence[Any], given: dict[str, Any]) -> Any:
        return own.call_boxed(keys, *args, **given)

    class Transformed(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(attributes: _Attributes, *args: Any) -> Any:
            nested = operator.nest(args)
            if are_active():  # within the generated rule
                return loop(nested, attributes.given)
            return operator.overload(*nested, **attributes.given)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            save(ctx, inputs[1:], inputs[0].given, output)

        @staticmethod
        def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
            # Outside the transformed function, where the function that torch.func.vjp returns is called, the tensors of
            # the transform have ended. Operators unwrap them, but differentiation in Python must do so itself.
            saved = unwrap_dead_wrappers(ctx.saved_tensors)
            return (None, *backward(ctx, saved, ctx.needs_input_grad[1:], grads))

    def call(*args: Any, **given: Any) -> Any:
        kinds = [interpreter.key() for interpreter in get_interpreter_stack() or []]
        if TransformType.Jvp in kinds:
            return formula(*args, **given)
        if kinds and kinds[-1] == TransformType.Grad:
            return Transformed.apply(_Attributes(given), *operator.flatten(operator.complete(args)))
        return loop(args, given)

    operator.register(call, _KEY)
