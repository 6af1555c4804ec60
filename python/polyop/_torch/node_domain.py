# SPDX-License-Identifier: Apache-2.0
"""The domain of exported nodes: it chooses among the node names of an operator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_domain = ContextVar("polyop.node_domain", default="mmcv")
"""A variable of the context: exports of other threads and tasks have their own."""


def chosen_domain() -> str:
    return _domain.get()


@contextmanager
def node_domain(domain: str) -> Iterator[None]:
    """In a `with` block, makes exporters prefer the node names of this domain: "mmcv", "mmdeploy" or "custom"."""
    token = _domain.set(domain)
    try:
        yield
    finally:
        _domain.reset(token)
