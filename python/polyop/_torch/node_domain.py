"""The domain of exported nodes: it chooses among the node names of an operator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_domain = "mmcv"


def chosen_domain() -> str:
    return _domain


@contextmanager
def node_domain(domain: str) -> Iterator[None]:
    """In a `with` block, makes exporters prefer the node names of this domain: "mmcv", "mmdeploy" or "custom"."""
    global _domain
    before, _domain = _domain, domain
    try:
        yield
    finally:
        _domain = before
