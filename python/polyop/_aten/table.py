# SPDX-License-Identifier: Apache-2.0
"""The table of translations: for each of PyTorch's operators that the exporter writes wrongly or not at all, how polyop
writes it.

The modules next to this one fill it, one for each theme. A translation is a decomposition: a function that computes the
operator by others, which the exporter then writes. It returns NotImplemented for a call that the exporter writes
correctly: such a program keeps its graph. A decomposition runs below functionalization, so that it uses no operator
that writes to its arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import torch

MISSING = "missing"
WRONG = "wrong numbers"
SLOW = "slow"
REFUSED = "a file that ONNX Runtime refuses"
REFUSED_BY_OPENVINO = "a file that OpenVINO refuses"
_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Translation:
    """How polyop writes an operator of PyTorch."""

    target: str
    """The operator's name with its overload, such as aten::avg_pool2d."""
    theme: str
    """The module that defines it."""
    without: str
    """What PyTorch's own exporter does: MISSING, WRONG, SLOW, REFUSED or REFUSED_BY_OPENVINO."""
    when: str
    """The calls that it applies to; empty for all."""
    nodes: tuple[str, ...]
    """polyop's operators that it uses. Without any, the file has only standard operators."""
    function: Callable[..., Any]


TRANSLATIONS: dict[str, Translation] = {}
"""By target."""


def decomposes(
    *targets: str, without: str = MISSING, when: str = "", nodes: tuple[str, ...] = ()
) -> Callable[[_F], _F]:
    """Adds the decorated function to the table, for each of these operators."""

    def add(function: _F) -> _F:
        own = function.func if isinstance(function, partial) else function
        theme = getattr(own, "__module__", "").rpartition(".")[2]
        for target in targets:
            assert target not in TRANSLATIONS, f"{target} has two translations"
            TRANSLATIONS[target] = Translation(target, theme, without, when, nodes, function)
        return function

    return add


def extend(
    target: str, when: str, make: Callable[[Callable[..., Any] | None], Callable[..., Any]], *, without: str = MISSING,
    nodes: tuple[str, ...] = (),
) -> None:  # fmt: skip
    """Adds a translation, which `make` makes from the one that the operator has, if any."""
    before = TRANSLATIONS.get(target)
    if before is None:
        decomposes(target, without=without, when=when, nodes=nodes)(make(None))
        return
    when = f"{before.when}; {when}" if before.when else ""
    used = tuple(dict.fromkeys((*before.nodes, *nodes)))
    TRANSLATIONS[target] = replace(before, when=when, nodes=used, function=make(before.function))


def first_of(first: Callable[..., Any], other: Callable[..., Any] | None) -> Callable[..., Any]:
    """Returns the translation that `first` is, or the other one for the calls that it leaves."""
    if other is None:
        return first

    def call(*args: Any, **given: Any) -> Any:
        result = first(*args, **given)
        return other(*args, **given) if result is NotImplemented else result

    return call


def overload(target: str) -> torch._ops.OpOverload | None:
    """Returns the operator of a name; None if this release of PyTorch lacks it."""
    namespace, _, name = target.partition("::")
    name, _, which = name.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, namespace), name), which or "default")
    except AttributeError:
        return None
