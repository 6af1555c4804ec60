# SPDX-License-Identifier: Apache-2.0
"""Times every operator and its rivals and writes a table, JSON and a chart. Each row is saved when it is measured.

python bench/run.py [--only roi_align,nms] [--threads 1,2] [--isa best,avx2] [--out bench/results]
python bench/run.py --only roi_align --update               records these rows again
python bench/run.py --against bench/results [--only …]      names the rows that became slower than recorded
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

from accelerator import CASES as ACCELERATOR
from benchmark import Case, cases, selected
from harness import DisagreementError, Row, copy_bandwidth, gemm_speed, machine, measure
from regressions import MAX_FALL, fallen
from report import read, table, write_report, write_rows
from rich.console import Console
from rich.progress import Progress

from models import MODELS

HERE = Path(__file__).parent
ISAS = ("best", "avx3", "avx2", "sse4")
ALL = ACCELERATOR + cases("cpu") + MODELS
ORDER = {(case.operator, case.title): index for index, case in enumerate(ALL)}


def measure_all(chosen: list[Case], threads: list[int], console: Console, failed: list[str]) -> Iterator[Row]:
    """Yields rows, and adds the operators of cases without one to `failed`: a rival disagrees, or they do not run."""
    limits = {}
    for t in threads:
        limits[t] = (copy_bandwidth(t), gemm_speed(t))
        console.print(
            f"{t} thread(s): copy {limits[t][0] / 1e9:.1f} GB/s, GEMM {limits[t][1] / 1e9:.0f} GFLOP/s", highlight=False
        )
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Measuring", total=len(chosen) * len(threads))
        for case in chosen:
            for t in threads:
                progress.update(task, description=f"{case.operator}, {case.title}, {t} thread(s)")
                try:
                    yield measure(case, t, *limits[t])
                except DisagreementError as error:
                    failed.append(case.operator)
                    console.print(f"{case.operator}: {error}", style="red", highlight=False)
                except Exception as error:
                    failed.append(case.operator)
                    console.print(
                        f"{case.operator}, {case.title}: {error!r}", style="red", markup=False, highlight=False
                    )
                progress.advance(task)


def measure_apart(isa: str, arguments: argparse.Namespace, failed: list[str]) -> list[Row]:
    """Measures with another instruction set, in a new process: the library reads the variable when it is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--only", arguments.only, "--threads", arguments.threads, "--out", folder]
        run = subprocess.run(command, check=False, env={**os.environ, "POLYOP_ISA": isa}, stdout=subprocess.DEVNULL)
        if run.returncode != 0:
            failed.append(f"kernels of {isa}")
        try:
            return read(Path(folder))
        except FileNotFoundError:  # no case has a row
            return []


def in_order(rows: dict[object, Row]) -> list[Row]:
    """Returns the rows in the order of the cases, without those of removed cases."""
    known = [row for row in rows.values() if (row.operator, row.title) in ORDER]
    return sorted(known, key=lambda row: ORDER[row.operator, row.title])


def tell_fallen(rows: list[Row], recorded: list[Row], console: Console) -> int:
    """Prints the rows that became slower. Returns the process's exit status."""
    lines, compared = fallen(rows, recorded)
    for line in lines:
        console.print(line, highlight=False)
    console.print(f"{len(lines)} of {compared} rows fell by more than {MAX_FALL:.0%}", highlight=False)
    return 1 if lines else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="words of operators or sizes, separated by commas")
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--isa", default="best", help=f"instruction sets: {', '.join(ISAS)}")
    parser.add_argument("--out", type=Path, help="folder of the results: bench/results, or build/bench with --against")
    parser.add_argument("--update", action="store_true", help="keep recorded rows that are not measured now")
    parser.add_argument("--against", type=Path, help="a folder of recorded results to compare ratios with")
    arguments = parser.parse_args()
    isas = arguments.isa.split(",")
    for isa in isas:
        if isa not in ISAS:
            parser.error(f"--isa: expected any of {', '.join(ISAS)}, got {isa}")
    recorded = read(arguments.against) if arguments.against else []
    out = arguments.out or (HERE.parent / "build" / "bench" if arguments.against else HERE / "results")
    chosen = selected(ALL, arguments.only)
    threads = [int(t) for t in arguments.threads.split(",")]

    console = Console()
    about = machine()
    console.print(", ".join(f"{k} {v}" for k, v in about.items()), highlight=False)
    rows = {row.key: row for row in (read(out) if arguments.update else [])}
    measured: list[Row] = []
    failed: list[str] = []
    for isa in isas:
        best = isa == "best"
        if not best:
            console.print(f"kernels of {isa}", highlight=False)
        for row in measure_all(chosen, threads, console, failed) if best else measure_apart(isa, arguments, failed):
            measured.append(row)
            rows[row.key] = row
            write_rows(in_order(rows), about, out)
    Console(width=max(console.width, 200)).print(table(measured))  # a log file has no width
    if rows:
        write_report(in_order(rows), about, out)
        console.print(f"written to {out}: results.md, results.json, results.png")
    status = tell_fallen(measured, recorded, console) if arguments.against else 0
    if failed:
        console.print(f"without a row: {', '.join(dict.fromkeys(failed))}", style="red", highlight=False)
    sys.exit(1 if failed else status)


if __name__ == "__main__":
    main()
