"""polyop.accelerate(): PyTorch's own operators on the CPU, and torchvision's, run by polyop's kernels."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any
from warnings import catch_warnings, simplefilter

import torch

from polyop._stand_ins import OWN, STAND_INS, StandIn

__all__ = ["accelerate"]


def accelerate(on: bool = True) -> Accelerated:
    """Puts polyop's kernels under PyTorch's operators on the CPU, in the whole process; `accelerate(False)` takes them away.

    As a context manager it restores on leaving what was before the call:

        with polyop.accelerate():
            model(pictures)

    Results, types, strides and errors stay PyTorch's; so do gradients and other devices. A call that is too small to gain,
    or that polyop's kernels do not compute as PyTorch does, goes to PyTorch's own kernel. torchvision's operators take part
    if torchvision was imported before; a later call of accelerate() takes them in. Do not switch while other threads
    compute.
    """
    with _lock:
        before = bool(_replaced)
        _switch(on)
    return Accelerated(before)


class Accelerated:
    """What `accelerate` returns: leaving it as a context restores the state of before."""

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
    for stand_in in STAND_INS:
        # torchvision's operators may not be there.
        if stand_in.name not in _replaced and torch._C._dispatch_has_kernel(stand_in.name):
            _replaced[stand_in.name] = _replace(stand_in)


def _replace(stand_in: StandIn) -> torch.library.Library:
    own = torch.library.get_kernel(stand_in.name, stand_in.key)
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.__members__[stand_in.key])
    kernel = _first_polyop(stand_in.kernel, partial(own.call_boxed, keys))
    namespace, _, operator = stand_in.name.partition("::")
    library = torch.library.Library(namespace, "IMPL")
    with catch_warnings():
        simplefilter("ignore")  # of the override, which is what was asked for
        library.impl(operator, kernel, stand_in.key, allow_override=True)
    return library


def _first_polyop(kernel: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        try:
            made = kernel(*args)
        except RuntimeError:  # polyop refuses the call: PyTorch computes it, or refuses it by its own words
            made = OWN
        return own(*args) if made is OWN else made

    return call
