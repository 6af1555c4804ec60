# SPDX-License-Identifier: Apache-2.0
"""What a model's modules keep from one call to the next."""

from __future__ import annotations

from contextlib import suppress

import torch

_OF_PYTORCH = frozenset(vars(torch.nn.Module()))


class State:
    """The buffers of a model, with copies of their values, and its modules' attributes of Python, as they are now."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._values = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
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
