"""Time and memory of every operator over the size of its input: a table, JSON and a chart, with fitted exponents.

python bench/growth.py [--only nms,knn] [--seconds 2] [--out bench/results]

A size is four times the one before, until a call would take longer than --seconds or hold more memory than this
benchmark may. One thread; times are the processor's, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
import torch
from chart import draw_growth
from growing import CASES
from growing.call import Call, Growing
from harness import machine
from memory import scratch_of
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import polyop.functional  # noqa: F401  torch.ops.polyop

HERE = Path(__file__).parent

STEP = 4
MOST_BYTES = 3 << 30  # of inputs and outputs
CALLS, SECONDS_A_SIZE = 5, 0.3  # the best of so many, fewer if they take longer
LEAST_FITTED_MS = 0.1  # shorter calls are the way to the kernel
FITTED, FEWEST_FITTED = 4, 3  # sizes
# What is allowed beyond n log n: from 10^4 to 10^6 a logarithm adds 0.09 to an exponent, leaving the caches about as much.
MOST_EXPONENT = 1.25


@dataclass
class Point:
    n: int
    elements: int  # of outputs, and of the inputs that grow
    milliseconds: float
    scratch: float  # MiB that the call held beside inputs and outputs


@dataclass
class Growth:
    operator: str
    what: str
    points: list[Point]

    def exponent(self, of: str, over: str = "elements") -> float | None:
        """By which power `of` grows with `over`, fitted to the largest sizes on logarithmic axes."""
        fitted = [p for p in self.points if p.milliseconds >= LEAST_FITTED_MS and getattr(p, of) > 0]
        fitted = fitted[-FITTED:]
        if len(fitted) < FEWEST_FITTED:
            return None
        x, y = (np.log([getattr(p, name) for p in fitted]) for name in (over, of))
        return float(np.polyfit(x, y, 1)[0])


def keep_memory() -> None:
    """Freed memory stays the process's: new pages, which the system fills with zeros, would be most of a short call."""
    m_trim_threshold, m_mmap_max = -1, -4
    libc = ctypes.CDLL(None)
    libc.mallopt(m_mmap_max, 0)
    libc.mallopt(m_trim_threshold, -1)


def seconds_of(run: Call) -> float:
    """The least of some calls, two at least: the first one asks the system for memory."""
    best, total, calls = float("inf"), 0.0, 0
    while calls < CALLS and (calls < 2 or total < SECONDS_A_SIZE):
        start = time.process_time()
        run()
        took = time.process_time() - start
        best, total, calls = min(best, took), total + took, calls + 1
    return best


def outputs_and_scratch(run: Call) -> tuple[int, float]:
    """The elements of its outputs, which do not stay, and MiB of scratch."""
    outputs, scratch = scratch_of(run)
    return sum(t.numel() for t in outputs), scratch


def measure(case: Growing, seconds: float) -> Growth:
    points: list[Point] = []
    inputs: list[list[int]] = []  # the elements of each, for each point
    n = case.least
    while n <= case.most:
        run = case.make(n)
        outputs, scratch = outputs_and_scratch(run)
        inputs.append([t.numel() for t in run.inputs()])
        points.append(Point(n, outputs, seconds_of(run) * 1e3, scratch))
        n = case.most if n < case.most < n * STEP else n * STEP
        # As the last step, at least in proportion.
        times = n / points[-1].n
        growth = max(times, (points[-1].milliseconds / points[-2].milliseconds) if len(points) > 1 else 0)
        if points[-1].milliseconds * growth > seconds * 1e3:
            break
        if (sum(t.nbytes for t in run.inputs()) + 4 * outputs) * times > MOST_BYTES:
            break
    # A picture that stays while rois become more is not what time grows with.
    growing = [i for i, sizes in enumerate(zip(*inputs, strict=True)) if len(set(sizes)) > 1 or len(points) == 1]
    for point, sizes in zip(points, inputs, strict=True):
        point.elements += sum(sizes[i] for i in growing)
    return Growth(case.operator, case.what, points)


HEADER = ["operator", "of", "sizes", "largest, ms", "ms a million", "time", "scratch, MiB", "memory"]


def cells(row: Growth) -> list[str]:
    last = row.points[-1]
    power = row.exponent("milliseconds")
    memory = row.exponent("scratch") if last.scratch >= 1 else None
    return [
        row.operator,
        row.what,
        f"{row.points[0].n:,} to {last.n:,}",
        f"{last.milliseconds:.3g}",
        f"{last.milliseconds / last.elements * 1e6:.3g}",
        f"n^{power:.2f}" + (" *" if power > MOST_EXPONENT else "") if power is not None else "-",
        f"{last.scratch:.3g}",
        f"n^{memory:.2f}" if memory is not None else "-",
    ]


def markdown(rows: list[Growth], about: dict[str, object]) -> str:
    lines = ["# Growth", "", ", ".join(f"{k} {v}" for k, v in about.items()) + ". One thread, processor time.", "",
             "Milliseconds of the largest size, and for each million elements. `n^p` is fitted to the largest four sizes on "
             "logarithmic axes; n is the number of elements of the outputs and of the inputs that grow. "
             "A star marks those that grow faster than n log n. Scratch is what a call held beside inputs and outputs.", ""]  # fmt: skip
    lines += ["![Milliseconds over elements, on logarithmic axes](growth.png)", ""]
    lines += ["| " + " | ".join(HEADER) + " |", "|" + " --- |" * len(HEADER)]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="words of operators or of what grows, separated by commas")
    parser.add_argument("--seconds", type=float, default=2, help="what a call may take")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="where results go")
    arguments = parser.parse_args()
    words = [w for w in arguments.only.split(",") if w]
    chosen = [c for c in CASES if not words or any(w in f"{c.operator} {c.what}" for w in words)]
    if not chosen:
        raise SystemExit(f"no case has any of: {', '.join(words)}")

    console, about = Console(), machine()
    torch.set_num_threads(1)
    keep_memory()
    rows: list[Growth] = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Measuring", total=len(chosen))
        for case in chosen:
            progress.update(task, description=f"{case.operator}, {case.what}")
            rows.append(measure(case, arguments.seconds))
            progress.advance(task)
    table = Table(*HEADER, box=box.SIMPLE)
    for row in rows:
        table.add_row(*cells(row))
    Console(width=max(console.width, 160)).print(table)  # a log file has no width of its own

    arguments.out.mkdir(parents=True, exist_ok=True)
    exponents = [{"time": row.exponent("milliseconds"), "memory": row.exponent("scratch")} for row in rows]
    made = [{**asdict(row), "exponents": power} for row, power in zip(rows, exponents, strict=True)]
    (arguments.out / "growth.json").write_text(json.dumps({"machine": about, "rows": made}, indent=1))
    (arguments.out / "growth.md").write_text(markdown(rows, about))
    draw_growth(rows, about, arguments.out / "growth.png")
    console.print(f"written to {arguments.out}: growth.md, growth.json, growth.png")


if __name__ == "__main__":
    main()
