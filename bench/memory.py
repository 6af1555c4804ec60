"""What a call does to memory: what it holds at most, the pages that it faults in, and what it costs when caches are empty."""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FLUSHED_BYTES = 1 << 28  # several times the last cache of a large processor


def _kilobytes(field: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1])


def scratch_of(run: Callable[[], Sequence[Any]]) -> tuple[Sequence[Any], float]:
    """A call's outputs, and the MiB that the process held at most beyond what it held before, outputs aside."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the highest resident size begins anew
    before = _kilobytes("VmRSS")
    outputs = run()
    held = _kilobytes("VmHWM") - before
    written = sum(o.nbytes if hasattr(o, "nbytes") else o.tensor_size_in_bytes() for o in outputs)
    return outputs, max(0.0, held / 1024 - written / 2**20)


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
