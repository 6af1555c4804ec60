"""Which rows fell behind those that were recorded. Times differ between machines; what is compared is how many times as long
the best rival took in the same run, or where there is none, how many times the limit we took."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness import Row

MOST_FALL = 0.2


def fallen(rows: Iterable[Row], recorded: Iterable[Row]) -> tuple[list[str], int]:
    """A line for each row whose merit is more than a fifth below the recorded one, and how many rows were compared."""
    before = {row.key: row for row in recorded}
    pairs = [(row, before[row.key]) for row in rows if row.key in before]
    lines, compared = [], 0
    for row, old in pairs:
        # A ratio to other rivals, or to none, is another ratio.
        now, then = _merit(row), _merit(old)
        if now is None or then is None or (row.ratio is None) != (old.ratio is None):
            continue
        compared += 1
        if now < then * (1 - MOST_FALL):
            what = "rival / us" if row.ratio is not None else "limit / us"
            lines.append(
                f"{row.operator}, {row.title}, {row.isa}, {row.threads} thread(s): {what} {now:.2f}, was {then:.2f}"
            )
    return lines, compared


def _merit(row: Row) -> float | None:
    if row.ratio is not None:
        return row.ratio
    return row.limit_ms / row.ours.median if row.limit_ms > 0 else None
