# SPDX-License-Identifier: Apache-2.0
"""What a model's modules keep from one call to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

from polyop.exporting.report import ExportError

_OF_PYTORCH = frozenset(vars(torch.nn.Module()))


class State:
    """The buffers of a model, with copies of their values, and its modules' attributes of Python, as they are now."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._named = {n: buffer.detach().clone() for n, buffer in model.named_buffers() if not is_lazy(buffer)}
        self._values = [(buffer, self._named[name]) for name, buffer in model.named_buffers() if name in self._named]
        self._parameters = [(n, p, p.data_ptr()) for n, p in model.named_parameters() if not is_lazy(p)]
        self._attributes = [
            (m, type(m), {k: v for k, v in vars(m).items() if k not in _OF_PYTORCH}, dict(m._buffers))
            for m in model.modules()
        ]

    def restore_values(self) -> None:
        """Gives the buffers their values."""
        for buffer, values in self._values:
            if buffer.shape == values.shape and not torch.equal(buffer, values):
                buffer.copy_(values)

    def restore(self) -> None:
        """Gives the modules their attributes, too, except those that were initialized by a call, such as LazyLinear."""
        for module, kind, attributes, buffers in self._attributes:
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
        return {n: now[n].detach().clone() for n, v in self._named.items() if n in now and not _equal([v], [now[n]])}

    def replaced(self) -> list[str]:
        """Returns the names of the parameters to which a call has assigned other memory, by Tensor.data."""
        return [name for name, parameter, address in self._parameters if parameter.data_ptr() != address]


def require_no_state(
    model: torch.nn.Module, before: State, call: Callable[[], list[Tensor]], first: Sequence[Tensor]
) -> None:
    """Raises ExportError if outputs depend on a buffer that the call before has changed, such as a counter or what is
    left of a stream: a file has the value of the buffer before the first call. Also if a call assigns to the data of a
    parameter: while PyTorch captures it, the parameter would get data without values, and accessing them is fatal.

    before: the state before that call.
    call: runs the model in its present state.
    first: the outputs of that call.
    """
    if replaced := before.replaced():
        names = ", ".join(f"'{name}'" for name in replaced)
        raise ExportError(
            f"a call assigns to the data of {names}, which PyTorch cannot capture"
            "\nwrite instead: a forward() that computes these values without the parameter; or call the model once before,"
            " if only its first call assigns"
        )
    changed = before.changed(model)
    if not changed or _equal(call(), first):
        return
    before.restore()
    if not _equal(call(), first):  # the model is random
        return
    needed = []
    for name, value in changed.items():
        before.restore()
        model.get_buffer(name).copy_(value)
        if not _equal(call(), first):
            needed.append(name)
    names = ", ".join(f"'{name}'" for name in needed or changed)
    raise ExportError(
        f"a call changes {names}, on which the outputs of the next call depend: a file keeps nothing from call to call"
        "\nwrite instead: a forward() with the state as an input, which returns the new state as an output"
    )


def _equal(some: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    """Compares as PyTorch's own results are from call to call; NaN equals NaN."""
    return len(some) == len(others) and all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and (torch.allclose(a, b, equal_nan=True) if a.is_floating_point() or a.is_complex() else torch.equal(a, b))
        for a, b in zip(some, others, strict=True)
    )
