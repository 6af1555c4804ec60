"""Which of its node names an operator is exported under."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_domain = "mmcv"


def chosen_domain() -> str:
    return _domain


@contextmanager
def node_domain(domain: str) -> Iterator[None]:
    """Within, exporters write the node names of this domain ("mmcv", "mmdeploy", "custom") where an operator has one."""
    global _domain
    before, _domain = _domain, domain
    try:
        yield
    finally:
        _domain = before
