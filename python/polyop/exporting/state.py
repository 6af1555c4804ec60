# SPDX-License-Identifier: Apache-2.0
"""What a model's modules keep from one call to the next."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.parameter import is_lazy

from polyop._aten.guards import is_pytorchs
from polyop.exporting.report import ExportError

_OF_PYTORCH = frozenset(vars(torch.nn.Module()))


class State:
    """The buffers of a model, with copies of their values, and its modules' attributes of Python, as they are now."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._buffers = [
            (n, buffer, buffer.detach().clone()) for n, buffer in model.named_buffers() if not is_lazy(buffer)
        ]
        self._parameters = [(n, p, p.data_ptr()) for n, p in model.named_parameters() if not is_lazy(p)]
        self._attributes = [
            (name, m, type(m), {k: v for k, v in vars(m).items() if k not in _OF_PYTORCH}, dict(m._buffers))
            for name, m in model.named_modules()
        ]

    def restore_values(self) -> None:
        """Gives the buffers their values."""
        for _, buffer, values in self._buffers:
            if buffer.shape == values.shape and not torch.equal(buffer, values):
                buffer.copy_(values)

    def restore(self) -> None:
        """Gives the modules their attributes, too, except those that were initialized by a call, such as LazyLinear."""
        for _, module, kind, attributes, buffers in self._attributes:
            if type(module) is kind:
                for name in vars(module).keys() - attributes.keys() - _OF_PYTORCH:
                    del vars(module)[name]
                vars(module).update(attributes)
                with suppress(AttributeError):  # of TorchScript's modules
                    module._buffers.clear()
                    module._buffers.update(buffers)
        self.restore_values()

    def changed(self, model: torch.nn.Module) -> dict[str, Tensor]:
        """Returns copies of those buffers of the model, by name, that now have other values."""
        now = dict(model.named_buffers())
        return {n: now[n].detach().clone() for n, _, v in self._buffers if n in now and not _equal([v], [now[n]])}

    def changed_attributes(self) -> list[str]:
        """Returns the names of the modules' attributes that are other objects now."""
        return [
            f"{name}.{key}" if name else key
            for name, module, kind, attributes, _ in self._attributes
            for key, value in vars(module).items()
            if type(module) is kind and key not in _OF_PYTORCH and attributes.get(key) is not value
        ]

    def replaced(self) -> list[str]:
        """Returns the names of the parameters to which a call has assigned other memory, by Tensor.data."""
        return [name for name, parameter, address in self._parameters if parameter.data_ptr() != address]


def forget_captured_tensors() -> None:
    """Deletes tensors of a capture from the dictionaries that are global variables of the program, such as caches by
    size: they have no values, and later calls and captures would find them."""
    for module in list(sys.modules.values()):
        if is_pytorchs(getattr(module, "__file__", None) or ""):
            continue
        for cache in [value for value in getattr(module, "__dict__", {}).values() if type(value) is dict]:
            for key in [key for key, value in cache.items() if isinstance(value, FakeTensor)]:
                del cache[key]


def require_no_state(
    model: torch.nn.Module, before: State, call: Callable[[], list[Tensor]], call_with_others: Callable[[], list[Tensor]],
    first: Sequence[Tensor],
) -> None:  # fmt: skip
    """Raises ExportError if outputs depend on a buffer or attribute that the call before has changed, such as a counter
    or what is left of a stream: a file has the value before the first call. Also if a call assigns to the data of a
    parameter: while PyTorch captures it, the parameter would get data without values, and accessing them is fatal.

    before: the state before that call.
    call: runs the model in its present state, with the same inputs; call_with_others, with others: a model that returns
        the change from call to call tells nothing if nothing changes.
    first: the outputs of that call.
    """
    if replaced := before.replaced():
        names = ", ".join(f"'{name}'" for name in replaced)
        raise ExportError(
            f"a call assigns to the data of {names}, which PyTorch cannot capture"
            "\nwrite instead: a forward() that computes these values without the parameter; or call the model once before,"
            " if only its first call assigns"
        )
    if any(tensor.layout != torch.strided for tensor in first):  # exporters refuse sparse ones
        return
    changed, attributes, later = before.changed(model), before.changed_attributes(), [call()]
    if not changed and not attributes and _equal(later[0], first):
        return
    try:
        later.append(call_with_others())
    except Exception:  # the model does not accept them
        call_with_others = call
        later.append(later[0])
    before.restore()
    if not _equal(call(), first):  # the model is random
        return
    before.restore()
    is_kept = not _equal(later[0], first) or not _equal(later[1], call_with_others())

    def depends_on(name: str, value: Tensor) -> bool:
        before.restore()
        buffer = model.get_buffer(name)
        if buffer.shape == value.shape:
            buffer.copy_(value)
        return not _equal(call(), first)

    # What one call leaves in a delay line is what a later one returns.
    needed = [n for n, value in changed.items() if depends_on(n, value) or depends_on(n, _with_noise(value))]
    if is_kept and not needed:
        needed = attributes or list(changed)
    if needed:
        names = ", ".join(f"'{name}'" for name in needed)
        raise ExportError(
            f"a call changes {names}, on which the outputs of later calls depend: a file keeps nothing from call to"
            " call\nwrite instead: a forward() with the state as an input, which returns the new state as an output"
        )


def _with_noise(value: Tensor) -> Tensor:
    if not value.is_floating_point() or value.numel() == 0:
        return value
    generator = torch.Generator().manual_seed(17)
    return value + (1 + value.abs().max()) * torch.rand(value.shape, generator=generator).to(value)


def _equal(some: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    """Compares as PyTorch's own results are from call to call; NaN equals NaN."""
    return len(some) == len(others) and all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and (torch.allclose(a, b, equal_nan=True) if a.is_floating_point() or a.is_complex() else torch.equal(a, b))
        for a, b in zip(some, others, strict=True)
    )
