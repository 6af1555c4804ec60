"""Every operator beside its rivals: a table, JSON and a chart. Rows are kept as they are measured.

python bench/run.py [--only roi_align,nms] [--threads 1,2] [--isa best,avx2] [--out bench/results]
python bench/run.py --only roi_align --update               records these rows anew
python bench/run.py --against bench/results [--only …]      names the rows that fell behind those recorded there
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from cases import CASES
from harness import Case, DisagreementError, Row, copy_bandwidth, gemm_speed, machine, measure
from regressions import MOST_FALL, fallen
from report import read, table, write_report, write_rows
from rich.console import Console
from rich.progress import Progress

from models import MODELS

HERE = Path(__file__).parent
ALL = CASES + MODELS
PLACES = {(case.operator, case.title): place for place, case in enumerate(ALL)}


def chosen(words: list[str]) -> list[Case]:
    """Every case whose operator or size has one of the words."""
    cases = [c for c in ALL if not words or any(w in f"{c.operator} {c.title}" for w in words)]
    if not cases:
        raise SystemExit(f"no case has any of: {', '.join(words)}")
    return cases


def measure_all(cases: list[Case], threads: list[int], console: Console) -> Iterator[Row]:
    """Says which have no row because a rival disagrees."""
    limits = {}
    for t in threads:
        limits[t] = (copy_bandwidth(t), gemm_speed(t))
        console.print(
            f"{t} thread(s): copy {limits[t][0] / 1e9:.1f} GB/s, GEMM {limits[t][1] / 1e9:.0f} GFLOP/s", highlight=False
        )
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Measuring", total=len(cases) * len(threads))
        for case in cases:
            for t in threads:
                progress.update(task, description=f"{case.operator}, {case.title}, {t} thread(s)")
                try:
                    yield measure(case, t, *limits[t])
                except DisagreementError as error:
                    console.print(f"{case.operator}: {error}", style="red", highlight=False)
                progress.advance(task)


def measure_apart(isa: str, arguments: argparse.Namespace) -> list[Row]:
    """The same with another instruction set forced: the library reads it when it is loaded, so in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--only", arguments.only, "--threads", arguments.threads, "--out", folder]
        subprocess.run(command, check=True, env={**os.environ, "POLYOP_ISA": isa}, stdout=subprocess.DEVNULL)
        return read(Path(folder))


def in_order(rows: dict[object, Row]) -> list[Row]:
    """Without those of cases that are no more."""
    known = [row for row in rows.values() if (row.operator, row.title) in PLACES]
    return sorted(known, key=lambda row: PLACES[row.operator, row.title])


def tell_fallen(rows: list[Row], recorded: list[Row], console: Console) -> int:
    """Names what fell behind; the process's exit status."""
    lines, compared = fallen(rows, recorded)
    for line in lines:
        console.print(line, highlight=False)
    console.print(f"{len(lines)} of {compared} rows fell by more than {MOST_FALL:.0%}", highlight=False)
    return 1 if lines else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="words of operators or sizes, separated by commas")
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--isa", default="best", help="instruction sets: best, avx3, avx2, sse4")
    parser.add_argument("--out", type=Path, help="where results go; bench/results, or build/bench with --against")
    parser.add_argument("--update", action="store_true", help="what is recorded there and not measured now stays")
    parser.add_argument("--against", type=Path, help="a folder of recorded results, to which ratios are compared")
    arguments = parser.parse_args()
    recorded = read(arguments.against) if arguments.against else []
    out = arguments.out or (HERE.parent / "build" / "bench" if arguments.against else HERE / "results")
    cases = chosen([w for w in arguments.only.split(",") if w])
    threads = [int(t) for t in arguments.threads.split(",")]

    console = Console()
    about = machine()
    console.print(", ".join(f"{k} {v}" for k, v in about.items()), highlight=False)
    rows = {row.key: row for row in (read(out) if arguments.update else [])}
    measured: list[Row] = []
    for isa in arguments.isa.split(","):
        if isa != "best":
            console.print(f"kernels of {isa}", highlight=False)
        for row in measure_all(cases, threads, console) if isa == "best" else measure_apart(isa, arguments):
            measured.append(row)
            rows[row.key] = row
            write_rows(in_order(rows), about, out)
    Console(width=max(console.width, 200)).print(table(measured))  # a log file has no width of its own
    if rows:
        write_report(in_order(rows), about, out)
        console.print(f"written to {out}: results.md, results.json, results.png")
    if arguments.against:
        sys.exit(tell_fallen(measured, recorded, console))


if __name__ == "__main__":
    main()
