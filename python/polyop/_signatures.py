"""What a signature's text tells of inputs and outputs; core/signature.h has its grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TENSOR = re.compile(r"\s*(\w+)(\?)?\s*:\s*(\w+)\s*\[(.*)\]\s*(\.\.\.)?\s*", re.DOTALL)


@dataclass(frozen=True)
class Argument:
    """One input or output."""

    name: str
    type: str
    """A type, `any`, or a variable such as T."""
    rank: int | None
    """None if the signature leaves it open."""
    optional: bool
    variadic: bool


def parse(text: str) -> tuple[list[Argument], list[Argument]]:
    """Inputs and outputs."""
    inputs, outputs = text.split("->")
    return [_argument(part) for part in _split(inputs)], [_argument(part) for part in _split(outputs)]


def _argument(text: str) -> Argument:
    name, optional, kind, shape, variadic = _TENSOR.fullmatch(text).groups()
    extents = _split(shape)
    rank = None if any("..." in extent for extent in extents) else len(extents)
    return Argument(name, kind, rank, bool(optional), bool(variadic))


def _split(text: str) -> list[str]:
    """At the commas outside of brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "[(") - (c in "])")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part for part in parts if part.strip()]
