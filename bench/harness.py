# SPDX-License-Identifier: Apache-2.0
"""Times contenders in one process, interleaved: warm-up, minimum and median, and the machine's limits."""

from __future__ import annotations

import ctypes
import os
import platform
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnxruntime as ort
import openvino as ov
import torch
from benchmark import Case, Contest, Run
from contenders import to_numpy
from memory import Flush, page_faults, scratch_of
from timing import LONGEST, interleaved, once

import polyop

SECONDS_A_TURN = 0.05
SECONDS_A_CASE = 8.0
COLD_CALLS, SECONDS_A_COLD_CALL = 5, 0.5  # a slower call runs once
FAULT_CALLS = 3


@dataclass
class Timing:
    minimum: float  # milliseconds
    median: float
    cold: float | None = None  # the median of single calls after the caches were flushed


@dataclass
class Row:
    operator: str
    title: str
    threads: int
    isa: str
    ours: Timing
    rivals: dict[str, Timing]
    limit_ms: float
    limit_kind: str
    scratch: float = 0  # MiB that our first call held in addition to inputs and outputs
    faults: float = 0  # pages that a later call of ours requested from the system

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.operator, self.title, self.isa, self.threads

    @property
    def best_rival(self) -> str | None:
        return min(self.rivals, key=lambda name: self.rivals[name].median) if self.rivals else None

    @property
    def ratio(self) -> float | None:
        """Returns the best rival's median time divided by ours."""
        return self.rivals[self.best_rival].median / self.ours.median if self.best_rival else None

    @property
    def cold_ratio(self) -> float | None:
        """Like `ratio`, with cold caches. The best rival may be another one."""
        cold = [timing.cold for timing in self.rivals.values() if timing.cold]
        return min(cold) / self.ours.cold if cold and self.ours.cold else None


# ---- limits ----------------------------------------------------------------------------------------


def copy_bandwidth(threads: int) -> float:
    """Returns bytes per second (read + written) of the C library's copy of 256 MiB, split over threads, the best of
    ten.
    """
    copy = ctypes.CDLL(None).memcpy  # called without the interpreter's lock
    copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    source, target = np.ones(1 << 28, np.uint8), np.ones(1 << 28, np.uint8)
    size = source.size // threads

    def part(i: int) -> None:
        copy(target.ctypes.data + i * size, source.ctypes.data + i * size, size)

    with ThreadPoolExecutor(threads) as pool:
        return 2 * source.size / min(once(lambda: list(pool.map(part, range(threads)))) for _ in range(10))


def gemm_speed(threads: int) -> float:
    """Returns floating-point operations per second of torch.mm in float32, the best of ten."""
    torch.set_num_threads(threads)
    a = torch.randn(1024, 1024)
    return 2 * 1024**3 / min(once(lambda: torch.mm(a, a)) for _ in range(10))


# ---- timing ----------------------------------------------------------------------------------------


class DisagreementError(Exception):
    """A rival gives another result, so its time is meaningless."""


def check(contest: Contest, ours: Sequence[np.ndarray], title: str) -> None:
    """Checks that every rival gives our result. Raises DisagreementError."""
    for name, rival in contest.rivals.items():
        theirs = to_numpy(rival())
        if contest.same is not None:
            equal = contest.same(ours, theirs)
        else:
            equal = all(
                a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=contest.tolerance, equal_nan=True)
                for a, b in zip(ours, theirs, strict=False)
            )
        if not equal:
            raise DisagreementError(f"{title}: polyop and {name} do not agree, nothing is timed")


def time_cold(runs: Mapping[str, Run], timings: Mapping[str, Timing]) -> None:
    """Times single calls, interleaved, each after the caches were flushed."""
    flush = Flush()
    for name, run in runs.items():
        if timings[name].median > LONGEST * 1e3:
            continue
        calls = COLD_CALLS if timings[name].median < SECONDS_A_COLD_CALL * 1e3 else 1
        samples = []
        for _ in range(calls):
            flush()
            samples.append(once(run) * 1e3)
        timings[name].cold = float(np.median(samples))


def measure(case: Case, threads: int, bandwidth: float, gemm: float) -> Row:
    torch.set_num_threads(threads)
    contest = case.make(threads)
    outputs, scratch = scratch_of(contest.ours)
    if contest.rivals:
        check(contest, to_numpy(outputs), case.title)
    yardstick = dict([contest.yardstick]) if contest.yardstick else {}
    runs = {"polyop": contest.ours, **contest.rivals, **yardstick}
    samples = interleaved(runs, SECONDS_A_CASE, turn=SECONDS_A_TURN)
    timings = {name: Timing(min(s), float(np.median(s))) for name, s in samples.items()}
    time_cold(runs, timings)
    faults = page_faults(contest.ours, FAULT_CALLS)
    for name, milliseconds in case.published.items():
        timings[name] = Timing(*[milliseconds[threads - 1]] * 2)
    moved, computed = contest.bytes_moved / bandwidth * 1e3, contest.flops / gemm * 1e3
    own = timings.pop("polyop")
    limit, kind = max(moved, computed), "memory" if moved >= computed else "arithmetic"
    for name in yardstick:
        limit, kind = timings.pop(name).median, name
    isa = os.environ.get("POLYOP_ISA") or "best"
    return Row(case.operator, case.title, threads, isa, own, timings, limit, kind, scratch, faults)


def machine() -> dict[str, object]:
    """Returns the properties of the machine that are recorded with the results."""
    model = "unknown"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        model = next(
            (line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line), model
        )
    return {
        "processor": model,
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "onnxruntime": ort.__version__,
        "torch": torch.__version__,
        "openvino": ov.__version__,
        "polyop": polyop.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def as_json(row: Row) -> dict[str, object]:
    return {**asdict(row), "best_rival": row.best_rival, "ratio": row.ratio, "cold_ratio": row.cold_ratio}


def from_json(row: Mapping[str, object]) -> Row:
    fields = {key: value for key, value in row.items() if key not in ("best_rival", "ratio", "cold_ratio")}
    fields["ours"] = Timing(**row["ours"])
    fields["rivals"] = {name: Timing(**timing) for name, timing in row["rivals"].items()}
    return Row(**fields)
