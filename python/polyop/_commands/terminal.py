# SPDX-License-Identifier: Apache-2.0
"""Text for terminals: tables and colours, as the program has them (cli/base/text.h)."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO


def _colored(code: str, text: str, stream: TextIO) -> str:
    return f"\033[{code}m{text}\033[0m" if stream.isatty() and "NO_COLOR" not in os.environ else text


def green(text: str) -> str:
    return _colored("32", text, sys.stdout)


def red(text: str) -> str:
    return _colored("31", text, sys.stdout)


def red_bold(text: str, stream: TextIO) -> str:
    return _colored("1;31", text, stream)


_CONTROL = re.compile("(\033\\[(?:0|1|31|32|1;31)m)|[\0-\x1f\x7f-\x9f\u061c\u2028-\u202e\u2066-\u2069\udc80-\udcff]")
"""polyop's colours, control characters, those that change the direction of text, and bytes that are not UTF-8."""


def escaped(text: str, keep: str = "") -> str:
    """Returns the text with control characters as \\u001b, as cli/base/text.h: names in a model must not move the
    cursor, rename the window or hide text. Keeps polyop's colours and the characters of `keep`."""
    return _CONTROL.sub(lambda match: match[0] if match[1] or match[0] in keep else f"\\u{ord(match[0]):04x}", text)


class _Escaping:
    """A text stream that escapes what it passes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(escaped(text, keep="\n\t"))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def escape_output() -> None:
    """From then on, stdout and stderr escape all control characters but line breaks and tabs. Progress bars write to
    `sys.__stderr__`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, _Escaping):
            setattr(sys, name, _Escaping(stream))


def _width(text: str) -> int:
    return len(re.sub("\033\\[[0-9;]*m", "", text))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns lines with aligned columns and an underlined header."""
    rows = [[escaped(cell) for cell in row] for row in rows]
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
