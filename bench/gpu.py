# SPDX-License-Identifier: Apache-2.0
"""Times the CUDA kernels that people use most, compared with MMCV's, DCNv4's, torchvision's and torch's. Results are
compared first: a row says which ones differ, and no error ends the run.

Times are of CUDA events around single calls, interleaved with the rivals' calls. Before each call other data passes
through the L2 cache, and the GPU waits while the host launches the call: the time is the GPU's alone, unless the call
itself waits for the GPU. The column "replayed" is the
time of a call in a CUDA graph of many, with warm caches: what small calls take without the launch. The limit is the
time to move what must be moved at the speed of a copy, or of the multiplications at the speed of torch's product of
matrices of the same type, whichever is longer.

A CUDA error that ends a process costs only its row: the program continues in a new process.

python bench/gpu.py [--only roi_align,nms] [--seconds 0.5] [--json REPORT.json] [--table TABLE.md]
POLYOP_MMCV_SOURCE and POLYOP_DCNV4_SOURCE name checkouts whose kernels are compiled once (bench/projects.py).
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from benchmark import Case, Contest, Run, cases, difference, flat, selected
from timing import interleaved, once

from polyop import __version__

ROUNDS = 30
TOLERANCES = {torch.float32: 2e-3, torch.float16: 5e-2}
LAUNCH_CYCLES = 1_500_000  # of the GPU's clock: most of a millisecond, longer than any call's launch
MANY = 20  # calls of a graph
GRAPH_MS = 0.5  # slower calls do not need a graph
STATE = "POLYOP_GPU_BENCH_STATE"  # a file with the rows of the processes before this one


@dataclass
class Row:
    operator: str
    title: str
    dtype: str
    min_ms: float | None = None
    median_ms: float | None = None
    replayed_ms: float | None = None
    limit_ms: float | None = None
    limited_by: str = ""
    rivals: dict[str, tuple[float, float]] = field(default_factory=dict)  # minimum and median
    notes: list[str] = field(default_factory=list)

    @property
    def of_limit(self) -> float | None:
        return self.limit_ms / self.min_ms if self.limit_ms and self.min_ms else None

    @property
    def best_rival(self) -> str | None:
        return min(self.rivals, key=lambda name: self.rivals[name][1]) if self.rivals else None


@dataclass
class Limits:
    gb_s: float
    gflop_s: dict[str, float]


class Clock:
    """Times calls on the GPU, or for a check of the cases on the CPU."""

    def __init__(self, device: str) -> None:
        self.on_gpu = device == "cuda"
        self.other = torch.empty(256 << 20 if self.on_gpu else 1 << 20, dtype=torch.uint8, device=device)

    def wait(self) -> None:
        if self.on_gpu:
            torch.cuda.synchronize()

    def cold(self, run: Run) -> float:
        """Returns the seconds of a call whose data are not in the cache."""
        self.other.zero_()
        if not self.on_gpu:
            return once(run)
        torch.cuda._sleep(LAUNCH_CYCLES)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    def interleaved(self, runs: dict[str, Run], seconds: float) -> dict[str, list[float]]:
        """Returns the milliseconds of each contender's calls."""
        return interleaved(runs, seconds, ROUNDS, least=1, took=self.cold)

    def replayed_ms(self, run: Run) -> float:
        """Returns the time of a call in a graph. Requires: the call was run before."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(MANY):
                run()
        for _ in range(2):
            graph.replay()
        times = []
        for _ in range(5):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) / MANY)
        return min(times)


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def limits_of(clock: Clock) -> Limits:
    """Measures the copy of 256 MiB and products of square matrices, which have the highest rate."""
    side = 4096 if clock.on_gpu else 256
    copy = min(clock.interleaved({"": clock.other.clone}, 0.3)[""])
    products = {}
    for dtype in TOLERANCES:
        a, b = (torch.randn(side, side).to(dtype) for _ in range(2))
        fastest = min(clock.interleaved({"": lambda a=a, b=b: a @ b}, 0.3)[""])
        products[name_of(dtype)] = 2 * side**3 / fastest / 1e6
    return Limits(2 * clock.other.nbytes / copy / 1e6, products)


def short(error: Exception) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__


def measured(case: Case, clock: Clock, limits: Limits, seconds: float) -> Row:
    """Returns a row. Errors become its notes."""
    row = Row(case.operator, case.title, name_of(case.dtype))
    torch.manual_seed(0)
    try:
        contest = case.make()
        result = contest.ours()
        clock.wait()
    except Exception as error:
        row.notes.append(f"polyop: {short(error)}")
        return row
    runs: dict[str, Run] = {"polyop": contest.ours}
    for name, run in contest.rivals.items():
        try:
            theirs = run()
            differs = difference(result, theirs) if contest.same is None else float(not contest.same(result, theirs))
            clock.wait()
        except Exception as error:
            row.notes.append(f"{name}: {short(error)}")
            continue
        if not differs <= TOLERANCES[case.dtype]:
            row.notes.append(f"{name} differs" + (f" by {differs:.2g}" if contest.same is None else ""))
        runs[name] = run
    moved = sum(t.nbytes for t in [*contest.reads, *flat(result)])
    del result
    by_moving, by_products = moved / limits.gb_s / 1e6, contest.flops / limits.gflop_s[row.dtype] / 1e6
    row.limit_ms, row.limited_by = max((by_moving, "memory"), (by_products, "products"))
    try:
        times = clock.interleaved(runs, seconds)
    except Exception as error:
        row.notes.append(f"timing: {short(error)}")
        return row
    ours = times.pop("polyop")
    row.min_ms, row.median_ms = min(ours), statistics.median(ours)
    row.rivals = {name: (min(took), statistics.median(took)) for name, took in times.items()}
    return row


def add_replayed(case: Case, row: Row, clock: Clock) -> None:
    """Times a small call in a graph. It runs after all rows, because a failed capture may leave CUDA unusable."""
    torch.manual_seed(0)
    try:
        contest: Contest = case.make()
        for _ in range(2):
            contest.ours()
        clock.wait()
        row.replayed_ms = clock.replayed_ms(contest.ours)
    except Exception as error:
        row.notes.append(f"graph: {short(error)}")


def usable() -> bool:
    """Returns whether CUDA still works after an error."""
    try:
        torch.zeros(8, device="cuda").sum().item()
        torch.cuda.synchronize()
    except Exception:
        return False
    return True


def milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def table_of(about: dict[str, Any], rows: list[Row]) -> str:
    """Returns the table in Markdown."""
    names = sorted({name for row in rows for name in row.rivals}, key=["MMCV", "DCNv4", "torchvision", "torch"].index)
    replayed = ["replayed"] if any(row.replayed_ms is not None for row in rows) else []  # none with --no-graphs
    heads = ["operator", "call", "type", "min", "median", *replayed, "limit", "of limit", *names, "notes"]
    rates = ", ".join(f"{gflops / 1e3:.0f} TFLOP/s in {name}" for name, gflops in about["products_gflop_s"].items())
    lines = [
        "# On a GPU",
        "",
        f"{about['gpu']}, driver {about['driver']}, CUDA {about['cuda']}, torch {about['torch']}, polyop "
        f"{about['polyop']}. Copies move {about['copy_gb_s']:.0f} GB/s; products of matrices run at {rates}.",
        "",
        "Milliseconds. Rivals: the median, and in brackets how many times as long it takes as polyop's median. "
        "[Performance](../../docs/performance.md#on-a-gpu) explains the columns.",
        "",
        f"| {' | '.join(heads)} |",
        f"|{' --- |' * len(heads)}",
    ]
    for row in rows:
        columns = (row.min_ms, row.median_ms, *([row.replayed_ms] if replayed else []), row.limit_ms)
        times = [milliseconds(t) for t in columns]
        share = "" if row.of_limit is None else f"{row.of_limit:.0%} ({row.limited_by})"
        rivals = []
        for name in names:
            median = row.rivals.get(name, (0.0, None))[1]
            known = median is not None and row.median_ms
            rivals.append(f"{milliseconds(median)} ({median / row.median_ms:.2f}x)" if known else "")
        notes = "; ".join(row.notes).replace("|", "/")
        lines.append(f"| {' | '.join([row.operator, row.title, row.dtype, *times, share, *rivals, notes])} |")
    return "\n".join(lines) + "\n"


def driver() -> str:
    version = Path("/sys/module/nvidia/version")
    return version.read_text().strip() if version.exists() else "unknown"


def about_of(device: str, limits: Limits) -> dict[str, Any]:
    gpu = torch.cuda.get_device_name() if device == "cuda" else "no GPU: a check of the cases"
    return {
        "gpu": gpu, "driver": driver(), "cuda": torch.version.cuda, "torch": torch.__version__, "polyop": __version__,
        "copy_gb_s": limits.gb_s, "products_gflop_s": limits.gflop_s,
    }  # fmt: skip


class Report:
    """The rows, written after each one, so that a run that is cut off leaves a report."""

    def __init__(self, arguments: argparse.Namespace, about: dict[str, Any]) -> None:
        self.arguments, self.about = arguments, about
        self.state = Path(os.environ.get(STATE) or f"/tmp/polyop-gpu-bench-{os.getpid()}.json")
        known = json.loads(self.state.read_text()) if STATE in os.environ and self.state.exists() else []
        self.rows = [Row(**row) for row in known]
        self.done = int(os.environ.get(STATE + "_GRAPHS", "0"))  # graphs that were tried

    def write(self) -> None:
        self.state.write_text(json.dumps([asdict(row) for row in self.rows]))
        if self.arguments.json:
            rows = [{**asdict(row), "of_limit": row.of_limit, "best_rival": row.best_rival} for row in self.rows]
            self.arguments.json.write_text(json.dumps({**self.about, "rows": rows}, indent=2) + "\n")
        if self.arguments.table:
            self.arguments.table.write_text(table_of(self.about, self.rows))

    def restart(self) -> None:
        """Continues in a new process, because CUDA no longer works in this one."""
        self.write()
        os.environ[STATE], os.environ[STATE + "_GRAPHS"] = str(self.state), str(self.done)
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *sys.argv])


def line_of(row: Row) -> str:
    rivals = ", ".join(f"{ms / (row.median_ms or 1):.2f}x {name}" for name, (_, ms) in row.rivals.items())
    share = "" if row.of_limit is None else f"{row.of_limit:.0%} of the limit"
    parts = [f"{row.operator} {row.title} {row.dtype}: {milliseconds(row.median_ms)} ms", share, rivals, *row.notes]
    return ", ".join(part for part in parts if part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="words of operators and calls, separated by commas; =nms for one")
    parser.add_argument("--json", type=Path, help="a file for the report")
    parser.add_argument("--table", type=Path, help="a file for the table in Markdown")
    parser.add_argument("--seconds", type=float, default=0.4, help="time for a row, without its preparation")
    parser.add_argument("--no-graphs", action="store_true", help="leave out the column of CUDA graphs")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="cpu: a check of the cases' calls")
    parser.add_argument("--list", action="store_true", help="list the cases, without a GPU")
    arguments = parser.parse_args()
    if arguments.list:
        chosen = selected(cases("gpu"), arguments.only)
        for case in chosen:
            print(f"{case.operator} {case.title} {name_of(case.dtype)}")
        print(f"{len(chosen)} cases")
        return
    if arguments.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("bench/gpu.py needs a GPU that torch sees")
    chosen = selected(cases("gpu"), arguments.only)  # the files create tensors on the CPU
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_default_device(arguments.device)
    clock = Clock(arguments.device)
    limits = limits_of(clock)
    report = Report(arguments, about_of(arguments.device, limits))
    start = time.perf_counter()
    for case in chosen[len(report.rows) :]:
        row = measured(case, clock, limits, arguments.seconds)
        print(line_of(row), flush=True)
        report.rows.append(row)
        report.write()
        gc.collect()
        if clock.on_gpu and not usable():
            report.restart()
    for number, (case, row) in enumerate(zip(chosen, report.rows, strict=True)):
        small = row.median_ms is not None and row.median_ms < GRAPH_MS
        if arguments.no_graphs or not clock.on_gpu or not case.capturable or not small or number < report.done:
            continue
        report.done = number + 1
        add_replayed(case, row, clock)
        report.write()
        if not usable():
            report.restart()
    report.write()
    report.state.unlink(missing_ok=True)
    print(f"{len(report.rows)} rows in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
