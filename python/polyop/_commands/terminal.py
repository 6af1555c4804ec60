"""Text for terminals: tables and colours, as the program has them (cli/base/text.h)."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, TextIO


def _colored(code: str, text: str, stream: TextIO) -> str:
    return f"\033[{code}m{text}\033[0m" if stream.isatty() and "NO_COLOR" not in os.environ else text


def green(text: str) -> str:
    return _colored("32", text, sys.stdout)


def red(text: str) -> str:
    return _colored("31", text, sys.stdout)


def red_bold(text: str, stream: TextIO) -> str:
    return _colored("1;31", text, stream)


def _width(text: str) -> int:
    return len(re.sub("\033\\[[0-9;]*m", "", text))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns lines with aligned columns and an underlined header."""
    widths = [max(_width(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = []
    for row in (header, ["-" * width for width in widths], *rows):
        cells = [cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def bytes_text(count: int) -> str:
    """Returns "1.5 MB"."""
    return f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def print_json(report: Any) -> None:
    """Prints JSON, with null for numbers that JSON lacks: infinity and NaN."""
    print(json.dumps(_finite(report), indent=2, ensure_ascii=False, default=str, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(of_key) for key, of_key in value.items()}
    return [_finite(element) for element in value] if isinstance(value, (list, tuple)) else value
