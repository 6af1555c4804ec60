"""Rows of a benchmark as a table, as Markdown, as JSON and as a chart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from chart import draw
from harness import Row, as_json, from_json
from rich import box
from rich.table import Table

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
    "cold ms",
    "cold, rival / us",
    "scratch MiB",
    "faults",
]
LEGEND = (
    "Milliseconds a call; ratios are of medians. Cold is one call after other memory went through the caches, of ours and of the "
    "rival that is best then. Scratch is what the first call held beside inputs and outputs, faults are the pages that a "
    "later one asks the system for."
)
JSON_FILE = "results.json"


def read(folder: Path) -> list[Row]:
    return [from_json(row) for row in json.loads((folder / JSON_FILE).read_text())["rows"]]


def write_rows(rows: Iterable[Row], about: Mapping[str, object], folder: Path) -> None:
    """What `read` reads: quick enough to be written after each row."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": about, "rows": [as_json(row) for row in rows]}, indent=1)
    (folder / JSON_FILE).write_text(text)


def write_report(rows: list[Row], about: Mapping[str, object], folder: Path) -> None:
    """results.md and results.png."""
    (folder / "results.md").write_text(_markdown(rows, about))
    draw([row for row in rows if row.isa == rows[0].isa], about, folder / "results.png")


def table(rows: Iterable[Row]) -> Table:
    made = Table(*HEADER, box=box.SIMPLE)
    for row in rows:
        made.add_row(*_cells(row))
    return made


def _markdown(rows: Iterable[Row], about: Mapping[str, object]) -> str:
    lines = ["# Benchmarks", "", ", ".join(f"{k} {v}" for k, v in about.items()) + ".", "", LEGEND, ""]
    lines += ["| " + " | ".join(HEADER) + " |", "|" + " --- |" * len(HEADER)]
    lines += ["| " + " | ".join(_cells(row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> list[str]:
    best = row.best_rival
    return [
        row.operator,
        row.title,
        row.isa,
        str(row.threads),
        f"{row.ours.minimum:.3g}",
        f"{row.ours.median:.3g}",
        f"{best} {row.rivals[best].median:.3g}" if best else "-",
        f"{row.ratio:.2f}x" if best else "-",
        f"{row.ours.median / row.limit_ms:.1f}x {row.limit_kind}" if row.limit_ms > 0 else "-",
        f"{row.ours.cold:.3g}" if row.ours.cold else "-",
        f"{row.cold_ratio:.2f}x" if row.cold_ratio else "-",
        f"{row.scratch:.0f}",
        f"{row.faults:.0f}",
    ]
