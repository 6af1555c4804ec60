# SPDX-License-Identifier: Apache-2.0
"""Records what an export by torch.onnx.export(…, dynamo=True) translates, and what it cannot write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it imports sympy, which takes a second
    from polyop._aten.guards import Guard


@dataclass
class Record:
    """What an export translated, and what it cannot write."""

    translated: Counter[str] = field(default_factory=Counter)
    """The number of calls by operator, such as aten::cummax."""
    assumes_sizes: bool = False
    """Whether a condition of the program takes the branch for sizes of 2 or more, and depends on values of tensors."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Operators without an ONNX form, and the stack trace of a call of each; empty if there is none."""
    guards: list[Guard] = field(default_factory=list)
    """What the program assumes of sizes."""
    texts: list[str] = field(default_factory=list)
    """The lines of the program that made a text of a dynamic size, or looked one up."""


_record: ContextVar[Record | None] = ContextVar("polyop.export_record", default=None)


def current_record() -> Record | None:
    return _record.get()


@contextmanager
def recording() -> Iterator[Record]:
    """In a `with` block, records what exports translate."""
    record = Record()
    token = _record.set(record)
    try:
        yield record
    finally:
        _record.reset(token)
