"""What a call does to memory: what it holds at most, the pages that it faults in, and what it costs when caches are empty."""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

Result = TypeVar("Result")

FLUSHED_BYTES = 1 << 28  # several times the last cache of a large processor


def _kilobytes(field: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1])


def most_held(run: Callable[[], Result]) -> tuple[Result, float]:
    """What the call returns, and the MiB that the process held at most beyond what it held before, its results among them."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the highest resident size begins anew
    before = _kilobytes("VmRSS")
    result = run()
    return result, (_kilobytes("VmHWM") - before) / 1024


def page_faults(run: Callable[[], object], calls: int) -> float:
    """Pages that a call asks the system for."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        run()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / calls


class Flush:
    """Empties the caches of what others put there: reads and writes more than they hold."""

    def __init__(self) -> None:
        self._memory = np.ones(FLUSHED_BYTES // 8)

    def __call__(self) -> None:
        np.negative(self._memory, out=self._memory)
