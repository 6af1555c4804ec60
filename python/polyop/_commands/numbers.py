# SPDX-License-Identifier: Apache-2.0
"""Numbers from the command line, as the program reads them (cli/base/number.h)."""

from __future__ import annotations

import math
import re

from polyop._commands.errors import usage

_INTEGER = re.compile(r"[ \t]*([+-]?[0-9]+)[ \t]*")
_REAL = re.compile(
    r"[ \t]*([+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan))[ \t]*", re.IGNORECASE
)
_MAX_EXTENTS = 32
_MAX_SIDE = 1 << 15  # of an image


def parse_integer(text: str) -> int | None:
    """Parses all of `text` as a decimal 64-bit integer. Returns None if it is anything else."""
    match = _INTEGER.fullmatch(text)
    value = int(match[1]) if match and len(match[1]) <= 20 else None
    return value if value is not None and -(2**63) <= value < 2**63 else None


def parse_real(text: str) -> float | None:
    """Like parse_integer for real numbers. Accepts "inf" and "nan", and rejects numbers that no double has."""
    match = _REAL.fullmatch(text)
    if match is None:
        return None
    value, digits = float(match[1]), re.split("[eE]", match[1])[0]
    overflows = math.isinf(value) and "inf" not in match[1].lower()
    underflows = value == 0 and re.search("[1-9]", digits) is not None
    return None if overflows or underflows else value


def parse_number(text: str, option: str) -> int | float:
    """Parses a finite number, an integer as such. Raises CommandError."""
    integer, real = parse_integer(text), parse_real(text)
    if integer is not None:
        return integer
    if real is None or not math.isfinite(real):
        raise usage(f"{option}: '{text}' is not a number")
    return real


def parse_range(text: str) -> tuple[float, float]:
    """Parses "BLACK,WHITE", the values of black and white. Raises CommandError."""
    ends = [parse_real(end) for end in text.split(",")]
    if len(ends) != 2 or ends[0] == ends[1] or any(end is None or not math.isfinite(end) for end in ends):
        raise usage(f"--range: expected BLACK,WHITE, such as 0,1 or -1,1 or 0,255, got '{text}'")
    return float(ends[0] or 0), float(ends[1] or 0)


def parse_size(option: str, text: str | None) -> tuple[int, int] | str | None:
    """Parses "480x640", a height and a width, or "model". Raises CommandError."""
    if text is None or text == "model":
        return text
    extents = [parse_integer(part) for part in text.split("x")]
    if len(extents) != 2 or any(extent is None or not 0 < extent <= _MAX_SIDE for extent in extents):
        raise usage(f"{option}: expected HEIGHTxWIDTH, such as 480x640, or model, got '{text}'")
    return extents[0] or 0, extents[1] or 0


def parse_channels(option: str, text: str | None) -> tuple[float, ...] | None:
    """Parses one number or three, "0.485,0.456,0.406". Raises CommandError."""
    if text is None:
        return None
    values = [parse_real(part) for part in text.split(",")]
    if len(values) not in (1, 3) or any(value is None or not math.isfinite(value) for value in values):
        raise usage(f"{option}: expected a number, or three for the channels, got '{text}'")
    return tuple(value or 0.0 for value in values)


def parse_shape(text: str, option: str) -> list[int]:
    """Parses "1x3x224x224". Raises CommandError."""
    shape = []
    for part in text.split("x") if text else []:
        extent = parse_integer(part)
        if extent is None or extent < 0:
            raise usage(f"{option}: expected an extent, got '{part}'", "write NAME=1x3x224x224")
        shape.append(extent)
    if len(shape) > _MAX_EXTENTS:
        raise usage(f"{option}: expected at most {_MAX_EXTENTS} extents, got {len(shape)}")
    return shape


def split_named(option: str, text: str) -> tuple[str, str]:
    """Splits "NAME=VALUE". Raises CommandError if there is no name."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise usage(f"{option} {text}: NAME= is missing")
    return name, value
