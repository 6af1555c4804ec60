# SPDX-License-Identifier: Apache-2.0
"""polyop.accelerate(): runs PyTorch's own operators on the CPU, and torchvision's, with polyop's kernels."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any
from warnings import catch_warnings, simplefilter

import torch

from polyop.accelerating.overrides import FALLBACK, OVERRIDES, Override

__all__ = ["accelerate"]


def accelerate(on: bool = True) -> Accelerated:
    """Overrides PyTorch's operators on the CPU with polyop's kernels, in the whole process; `accelerate(False)` undoes
    it.

    As a context manager, restores the previous state on exit:

        with polyop.accelerate():
            model(images)

    Results, types, strides, errors, gradients and other devices remain PyTorch's. PyTorch's own kernel runs calls that
    are too small to gain, or that polyop's kernels compute differently. torchvision's operators are included if
    torchvision was imported before; a later call of accelerate() adds them. Do not switch while other threads compute.
    """
    with _lock:
        before = bool(_replaced)
        _switch(on)
    return Accelerated(before)


class Accelerated:
    """Restores the previous state on exit of a `with` block. Returned by `accelerate`."""

    def __init__(self, before: bool) -> None:
        self._before = before

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            _switch(self._before)


_lock = threading.Lock()
_replaced: dict[str, torch.library.Library] = {}  # by operator


def _switch(on: bool) -> None:
    if not on:
        while _replaced:
            _replaced.popitem()[1]._destroy()
        return
    for override in OVERRIDES:
        # torchvision's operators may be missing.
        if override.name not in _replaced and torch._C._dispatch_has_kernel(override.name):
            _replaced[override.name] = _replace(override)


def _replace(override: Override) -> torch.library.Library:
    own = torch.library.get_kernel(override.name, override.key)
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.__members__[override.key])
    kernel = _first_polyop(override.kernel, partial(own.call_boxed, keys))
    namespace, _, operator = override.name.partition("::")
    library = torch.library.Library(namespace, "IMPL")
    with catch_warnings():
        simplefilter("ignore")  # about the override, which is intended
        library.impl(operator, kernel, override.key, allow_override=True)
    return library


def _first_polyop(kernel: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        try:
            result = kernel(*args)
        except RuntimeError:  # polyop rejects the call: PyTorch computes it or raises its own error
            result = FALLBACK
        return own(*args) if result is FALLBACK else result

    return call
