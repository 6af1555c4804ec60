# SPDX-License-Identifier: Apache-2.0
"""Measures a call's memory: its peak, the pages that it faults in, and its time with empty caches."""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FLUSHED_BYTES = 1 << 28  # several times the last-level cache of a large processor


def _kilobytes(field: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1])


def scratch_of(run: Callable[[], Sequence[Any]]) -> tuple[Sequence[Any], float]:
    """Returns a call's outputs, and the peak memory in MiB above the level before the call, without outputs."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak of the resident size
    before = _kilobytes("VmRSS")
    outputs = run()
    held = _kilobytes("VmHWM") - before
    written = sum(o.nbytes if hasattr(o, "nbytes") else o.tensor_size_in_bytes() for o in outputs)
    return outputs, max(0.0, held / 1024 - written / 2**20)


def page_faults(run: Callable[[], object], calls: int) -> float:
    """Returns the number of pages that a call requests from the system."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        run()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / calls


def keep_memory() -> None:
    """Keeps freed memory in the process: otherwise most of a short call would be new pages, which the system fills with
    zeros.
    """
    m_trim_threshold, m_mmap_max = -1, -4
    libc = ctypes.CDLL(None)
    libc.mallopt(m_mmap_max, 0)
    libc.mallopt(m_trim_threshold, -1)


class Flush:
    """Flushes the caches: reads and writes more than they hold."""

    def __init__(self) -> None:
        self._memory = np.ones(FLUSHED_BYTES // 8)

    def __call__(self) -> None:
        np.negative(self._memory, out=self._memory)
