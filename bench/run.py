"""Every operator beside its rivals: a table, JSON and a chart.

python bench/run.py [--only roi_align,nms] [--threads 1,2] [--out bench/results]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from cases import CASES
from chart import draw
from harness import Row, as_json, copy_bandwidth, gemm_speed, machine, measure
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

HERE = Path(__file__).parent


def cells(row: Row) -> list[str]:
    best = row.best_rival
    rival = f"{best} {row.rivals[best].median:.3g}" if best else "-"
    ratio = f"{row.ratio:.2f}x" if best else "-"
    return [
        row.operator,
        row.title,
        str(row.threads),
        f"{row.ours.minimum:.3g}",
        f"{row.ours.median:.3g}",
        rival,
        ratio,
        f"{row.ours.median / row.limit_ms:.1f}x {row.limit_kind}" if row.limit_ms > 0 else "-",
    ]


HEADER = ["operator", "size", "threads", "min ms", "median ms", "best rival, median ms", "rival / us", "us / limit"]


def markdown(rows: list[Row], about: dict[str, object]) -> str:
    lines = ["# Benchmarks", "", "Milliseconds a call. " + ", ".join(f"{k} {v}" for k, v in about.items()) + ".", ""]
    lines += ["| " + " | ".join(HEADER) + " |", "|" + " --- |" * len(HEADER)]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="words of operators or sizes, separated by commas")
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="where results go")
    arguments = parser.parse_args()
    words = [w for w in arguments.only.split(",") if w]
    threads = [int(t) for t in arguments.threads.split(",")]
    cases = [c for c in CASES if not words or any(w in f"{c.operator} {c.title}" for w in words)]
    if not cases:
        raise SystemExit(f"no case has any of: {', '.join(words)}")

    console = Console()
    about = machine()
    console.print(", ".join(f"{k} {v}" for k, v in about.items()), highlight=False)
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
    table = Table(*HEADER, box=box.SIMPLE)
    for column in (0, 1, 5):
        table.columns[column].overflow = "fold"
    for row in rows:
        table.add_row(*cells(row))
    Console(width=max(console.width, 150)).print(table)  # a log file has no width of its own

    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "results.json").write_text(
        json.dumps({"machine": about, "rows": [as_json(r) for r in rows]}, indent=1)
    )
    (arguments.out / "results.md").write_text(markdown(rows, about))
    draw(rows, about, arguments.out / "results.png")
    console.print(f"written to {arguments.out}: results.md, results.json, results.png")


if __name__ == "__main__":
    main()
