# SPDX-License-Identifier: Apache-2.0
"""Measures time and memory of every operator over the size of its input: a table, JSON and a chart, with fitted
exponents.

python bench/growth.py [--only nms,knn] [--seconds 2] [--out bench/results]

Each size is four times the previous one, until a call would take longer than --seconds or need more memory than this
benchmark may use. One thread; times are processor time, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import records
import torch
from benchmark import Call, Case, cases, flat, selected
from chart import COLOURS, by_title
from harness import machine
from memory import keep_memory, scratch_of
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from timing import interleaved, once

HERE = Path(__file__).parent

STEP = 4
MAX_BYTES = 3 << 30  # inputs and outputs
CALLS, SECONDS_A_SIZE = 4, 0.3  # the minimum of this many calls after the first, fewer if they take longer
MIN_FITTED_MS = 0.1  # shorter calls are mostly overhead
FITTED, MIN_FITTED = 4, 3  # sizes
# The largest exponent that is accepted as n log n: from 10^4 to 10^6 the logarithm adds 0.09, and leaving the caches
# about as much.
MAX_EXPONENT = 1.25


@dataclass
class Point:
    n: int
    elements: int  # of outputs, and of the inputs that grow
    milliseconds: float
    scratch: float  # MiB that the call held in addition to inputs and outputs


@dataclass
class Growth:
    operator: str
    what: str
    points: list[Point]

    def exponent(self, of: str, over: str = "elements") -> float | None:
        """Returns the power of `over` with which `of` grows, fitted to the largest sizes on logarithmic axes."""
        fitted = [p for p in self.points if p.milliseconds >= MIN_FITTED_MS and getattr(p, of) > 0]
        fitted = fitted[-FITTED:]
        if len(fitted) < MIN_FITTED:
            return None
        x, y = (np.log([getattr(p, name) for p in fitted]) for name in (over, of))
        return float(np.polyfit(x, y, 1)[0])


def measure(case: Case, seconds: float) -> Growth:
    points: list[Point] = []
    inputs: list[list[int]] = []  # the elements of each input, for each point
    n, largest = case.sizes
    while n <= largest:
        call: Call = case.make(n)
        results, scratch = scratch_of(call.run)
        outputs, results = sum(t.numel() for t in results), []
        tensors = flat(call.inputs)
        inputs.append([t.numel() for t in tensors])
        times = interleaved({"": call.run}, SECONDS_A_SIZE, CALLS, least=1, took=partial(once, clock=time.process_time))
        points.append(Point(n, outputs, min(times[""]), scratch))
        n = largest if n < largest < n * STEP else n * STEP
        # Extrapolates the last step, at least in proportion.
        more = n / points[-1].n
        growth = max(more, (points[-1].milliseconds / points[-2].milliseconds) if len(points) > 1 else 0)
        if points[-1].milliseconds * growth > seconds * 1e3:
            break
        if (sum(t.nbytes for t in tensors) + 4 * outputs) * more > MAX_BYTES:
            break
    # An image that stays the same while the number of rois grows is not part of the size.
    growing = [i for i, sizes in enumerate(zip(*inputs, strict=True)) if len(set(sizes)) > 1 or len(points) == 1]
    for point, sizes in zip(points, inputs, strict=True):
        point.elements += sum(sizes[i] for i in growing)
    return Growth(case.operator, case.title, points)


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
        f"n^{power:.2f}" + (" *" if power > MAX_EXPONENT else "") if power is not None else "-",
        f"{last.scratch:.3g}",
        f"n^{memory:.2f}" if memory is not None else "-",
    ]


def markdown(rows: list[Growth], about: dict[str, object]) -> str:
    lines = ["# Growth", "", ", ".join(f"{k} {v}" for k, v in about.items()) + ". One thread, processor time.", "",
             "Milliseconds of the largest size, and for each million elements. `n^p` is fitted to the largest four sizes on "
             "logarithmic axes; n is the number of elements of the outputs and of the inputs that grow. "
             "A star marks those that grow faster than n log n. "
             "Scratch is memory that a call held in addition to inputs and outputs.", ""]  # fmt: skip
    lines += ["![Each operator's exponent of time, by room](growth.png)", ""]
    lines += ["| " + " | ".join(HEADER) + " |", "|" + " --- |" * len(HEADER)]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


LABELLED = 1.5  # operators above this exponent are named in the chart


def draw_growth(rows: list[Growth], about: dict[str, object], path: Path) -> None:
    """Draws a dot per row at its exponent of time, one line per room of operators."""
    exponents = [row.exponent("milliseconds") for row in rows]
    groups = by_title([row.operator for row in rows])
    figure, axes = plt.subplots(figsize=(10, 1.6 + 0.34 * len(groups)), layout="constrained")
    for position, members in enumerate(groups.values()):
        fitted = [i for i in members if exponents[i] is not None]
        axes.plot(
            [exponents[i] for i in fitted], [position] * len(fitted), "o", color=COLOURS[0], alpha=0.55, markersize=7
        )
        named = sorted((exponents[i], rows[i].operator) for i in fitted if exponents[i] > LABELLED)
        if named:
            text = ", ".join(dict.fromkeys(operator for _, operator in named))
            axes.text(named[-1][0] + 0.025, position, text, va="center", fontsize=8.5)
    for power, label in ((1, "n"), (MAX_EXPONENT, "n log n and\ncache misses"), (2, "n²")):
        axes.axvline(power, color="#555", linewidth=1, linestyle=":")
        axes.text(power, -0.75, label, ha="center", va="bottom", fontsize=9)
    axes.set_yticks(range(len(groups)), groups, fontsize=10)
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.set_xlim(min(0.5, *(e for e in exponents if e is not None)) - 0.05, 2.15)
    axes.set_xlabel("p of time = n^p, n: elements of the outputs and of the inputs that grow")
    axes.set_title(f"polyop {about['polyop']} on {about['processor']}, one thread", fontsize=11, pad=32)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="words of operators or of growing inputs, separated by commas")
    parser.add_argument("--seconds", type=float, default=2, help="maximum time of a call")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    arguments = parser.parse_args()
    chosen = selected(cases("growth"), arguments.only)
    console, about = Console(), machine()
    torch.set_num_threads(1)
    keep_memory()
    rows: list[Growth] = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Measuring", total=len(chosen))
        for case in chosen:
            progress.update(task, description=f"{case.operator}, {case.title}")
            rows.append(measure(case, arguments.seconds))
            progress.advance(task)
    table = Table(*HEADER, box=box.SIMPLE)
    for row in rows:
        table.add_row(*cells(row))
    Console(width=max(console.width, 160)).print(table)  # a log file has no width

    arguments.out.mkdir(parents=True, exist_ok=True)
    exponents = [{"time": row.exponent("milliseconds"), "memory": row.exponent("scratch")} for row in rows]
    recorded = [{**asdict(row), "exponents": power} for row, power in zip(rows, exponents, strict=True)]
    records.write(arguments.out / "growth.json", about, recorded)
    (arguments.out / "growth.md").write_text(markdown(rows, about))
    draw_growth(rows, about, arguments.out / "growth.png")
    console.print(f"written to {arguments.out}: growth.md, growth.json, growth.png")


if __name__ == "__main__":
    main()
