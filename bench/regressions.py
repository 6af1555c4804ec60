# SPDX-License-Identifier: Apache-2.0
"""Finds rows that became slower than recorded.

Times differ between machines, so the ratio to the best rival of the same run is compared, or the ratio to the limit if
there is no rival.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness import Row

MAX_FALL = 0.2


def fallen(rows: Iterable[Row], recorded: Iterable[Row]) -> tuple[list[str], int]:
    """Returns a line for each row whose merit is more than a fifth below the recorded one, and the number of compared
    rows.
    """
    before = {row.key: row for row in recorded}
    pairs = [(row, before[row.key]) for row in rows if row.key in before]
    lines, compared = [], 0
    for row, old in pairs:
        # A ratio to other rivals, or to none, is not comparable.
        now, then = _merit(row), _merit(old)
        if now is None or then is None or (row.ratio is None) != (old.ratio is None):
            continue
        compared += 1
        if now < then * (1 - MAX_FALL):
            what = "rival / us" if row.ratio is not None else "limit / us"
            lines.append(
                f"{row.operator}, {row.title}, {row.isa}, {row.threads} thread(s): {what} {now:.2f}, was {then:.2f}"
            )
    return lines, compared


def _merit(row: Row) -> float | None:
    if row.ratio is not None:
        return row.ratio
    return row.limit_ms / row.ours.median if row.limit_ms > 0 else None
