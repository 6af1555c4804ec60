# SPDX-License-Identifier: Apache-2.0
"""Writes and reads recorded results: JSON with one row per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def write(path: Path, about: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes the machine and the rows. A changed row is one changed line."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    path.write_text(f'{{\n"machine": {json.dumps(about)},\n"rows": [\n{lines}\n]\n}}\n')


def read(path: Path) -> list[dict[str, Any]]:
    """Returns the rows."""
    return json.loads(path.read_text())["rows"]
