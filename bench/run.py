"""Every operator beside its rivals: a table, JSON and a chart.

python bench/run.py [--only roi_align,nms] [--threads 1,2] [--isa best,avx2] [--out bench/results]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from cases import CASES
from chart import draw
from harness import Row, as_json, copy_bandwidth, from_json, gemm_speed, machine, measure
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from models import MODELS

HERE = Path(__file__).parent


def cells(row: Row) -> list[str]:
    best = row.best_rival
    rival = f"{best} {row.rivals[best].median:.3g}" if best else "-"
    ratio = f"{row.ratio:.2f}x" if best else "-"
    return [
        row.operator,
        row.title,
        row.isa,
        str(row.threads),
        f"{row.ours.minimum:.3g}",
        f"{row.ours.median:.3g}",
        rival,
        ratio,
        f"{row.ours.median / row.limit_ms:.1f}x {row.limit_kind}" if row.limit_ms > 0 else "-",
    ]


HEADER = [
    "operator",
    "size",
    "kernels",
    "threads",
    "min ms",
    "median ms",
    "best rival, median ms",
    "rival / us",
    "us / limit",
]


def markdown(rows: list[Row], about: dict[str, object]) -> str:
    lines = ["# Benchmarks", "", "Milliseconds a call. " + ", ".join(f"{k} {v}" for k, v in about.items()) + ".", ""]
    lines += ["| " + " | ".join(HEADER) + " |", "|" + " --- |" * len(HEADER)]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def measure_all(words: list[str], threads: list[int], console: Console) -> list[Row]:
    """Every case whose operator or size has one of the words."""
    cases = [c for c in CASES + MODELS if not words or any(w in f"{c.operator} {c.title}" for w in words)]
    if not cases:
        raise SystemExit(f"no case has any of: {', '.join(words)}")
    limits = {}
    for t in threads:
        limits[t] = (copy_bandwidth(t), gemm_speed(t))
        console.print(
            f"{t} thread(s): copy {limits[t][0] / 1e9:.1f} GB/s, GEMM {limits[t][1] / 1e9:.0f} GFLOP/s", highlight=False
        )
    rows: list[Row] = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Measuring", total=len(cases) * len(threads))
        for case in cases:
            for t in threads:
                progress.update(task, description=f"{case.operator}, {case.title}, {t} thread(s)")
                rows.append(measure(case, t, *limits[t]))
                progress.advance(task)
    return rows


def measure_apart(isa: str, arguments: argparse.Namespace) -> list[Row]:
    """The same with another instruction set forced: the library reads it when it is loaded, so in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--only", arguments.only, "--threads", arguments.threads, "--out", folder]
        subprocess.run(command, check=True, env={**os.environ, "POLYOP_ISA": isa}, stdout=subprocess.DEVNULL)
        return [from_json(row) for row in json.loads((Path(folder) / "results.json").read_text())["rows"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="words of operators or sizes, separated by commas")
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--isa", default="best", help="instruction sets: best, avx3, avx2, sse4")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="where results go")
    arguments = parser.parse_args()
    words = [w for w in arguments.only.split(",") if w]
    threads = [int(t) for t in arguments.threads.split(",")]

    console = Console()
    about = machine()
    console.print(", ".join(f"{k} {v}" for k, v in about.items()), highlight=False)
    rows: list[Row] = []
    for isa in arguments.isa.split(","):
        if isa != "best":
            console.print(f"kernels of {isa}", highlight=False)
        rows += measure_all(words, threads, console) if isa == "best" else measure_apart(isa, arguments)
    order = {key: i for i, key in enumerate(dict.fromkeys((row.operator, row.title) for row in rows))}
    rows.sort(key=lambda row: order[row.operator, row.title])
    table = Table(*HEADER, box=box.SIMPLE)
    for row in rows:
        table.add_row(*cells(row))
    Console(width=max(console.width, 160)).print(table)  # a log file has no width of its own

    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "results.json").write_text(
        json.dumps({"machine": about, "rows": [as_json(r) for r in rows]}, indent=1)
    )
    (arguments.out / "results.md").write_text(markdown(rows, about))
    draw([row for row in rows if row.isa == rows[0].isa], about, arguments.out / "results.png")
    console.print(f"written to {arguments.out}: results.md, results.json, results.png")


if __name__ == "__main__":
    main()
