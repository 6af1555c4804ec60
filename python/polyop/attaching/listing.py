# SPDX-License-Identifier: Apache-2.0
"""Tables of detections."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any


def csv_text(rows: Sequence[Mapping[str, Any]], first: Sequence[str] = ()) -> str:
    """Returns CSV: a row per detection, as Detection.as_json writes it, a column per coordinate.

    first: the names of further entries of the rows, whose columns come first.
    """
    rotated = any(len(row["box"]) == 5 for row in rows)
    coordinates = ["cx", "cy", "width", "height", "angle"] if rotated else ["x1", "y1", "x2", "y2"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    score = "share" if any("share" in row for row in rows) else "score"
    writer.writerow([*first, "class", "name", score, *coordinates])
    writer.writerows(
        [*(row[name] for name in first), row["class"], row["name"], row[score], *row["box"]] for row in rows
    )
    return text.getvalue()
