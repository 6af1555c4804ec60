# SPDX-License-Identifier: Apache-2.0
"""Writes the rows of a benchmark as a table, as Markdown, as JSON and as a chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import records
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
    "Times are milliseconds per call; ratios are of medians. Cold: one call after the caches were flushed, for polyop and for the "
    "rival that is best then. Scratch: memory that the first call held in addition to inputs and outputs. Faults: pages that a "
    "later call requested from the system."
)
JSON_FILE = "results.json"


def read(folder: Path) -> list[Row]:
    return [from_json(row) for row in records.read(folder / JSON_FILE)]


def write_rows(rows: Iterable[Row], about: Mapping[str, object], folder: Path) -> None:
    """Writes the file that `read` reads. It is quick enough to be called after each row."""
    folder.mkdir(parents=True, exist_ok=True)
    records.write(folder / JSON_FILE, about, [as_json(row) for row in rows])


def write_report(rows: list[Row], about: Mapping[str, object], folder: Path) -> None:
    """Writes results.md and results.png."""
    (folder / "results.md").write_text(_markdown(rows, about))
    draw([row for row in rows if row.isa == rows[0].isa], about, folder / "results.png")


def table(rows: Iterable[Row]) -> Table:
    result = Table(*HEADER, box=box.SIMPLE)
    for row in rows:
        result.add_row(*_cells(row))
    return result


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
