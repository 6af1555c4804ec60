# SPDX-License-Identifier: Apache-2.0
"""The report of an optimization: the matches and what happened to them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import onnx

_COLUMNS = ("found", "where", "replaced", "largest difference")


@dataclass
class Finding:
    """One match of a pattern."""

    pattern: str
    where: str
    replaced: bool = False
    why: str = ""  # the reason why it was not replaced, in a few words
    details: str = ""  # the rest of the reason
    difference: float | None = None  # between the node and the nodes that it replaces
    change: float | None = None  # if that is a fix: between the node and ONNX Runtime's result
    before: float | None = None  # seconds, with measure=True
    after: float | None = None


@dataclass
class Report:
    findings: list[Finding] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)  # which inputs were synthetic, and the dynamic sizes
    notes: list[str] = field(default_factory=list)  # limitations, such as skipped parts of the model
    note_details: list[str] = field(default_factory=list)  # the rest of their reasons
    differences: dict[str, float] = field(default_factory=dict)  # between the model's outputs, by the way it was run
    before: float | None = None  # seconds of a run of the model, with measure=True
    after: float | None = None
    bytes_before: int = 0
    bytes_after: int = 0
    moved: int = 0  # nodes that are in the domain trt.plugins now
    needs_polyop: bool = False  # a replacement has no function of standard operators in the file
    model: onnx.ModelProto | None = None  # if it was not written to a file
    lists: bool = False  # nodes were sought that a runtime lacks
    data: list[str] = field(default_factory=list)  # the files of the written model's external data

    @property
    def replaced(self) -> Counter[str]:
        """The number of replacements per pattern."""
        return Counter(f.pattern for f in self.findings if f.replaced)

    def note(self, text: str, details: str) -> None:
        """Adds a note whose reason is long."""
        self.notes.append(text)
        self.note_details.append(f"{text}: {details}")

    def details(self) -> list[str]:
        """Returns the reasons that are longer than a few words, a line each."""
        lines = [f"{f.pattern} at {f.where}: {f.why}: {f.details}" for f in self.findings if f.details]
        return list(dict.fromkeys([*lines, *self.note_details]))

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Returns the header and the rows of a table."""
        measured = any(f.before is not None for f in self.findings)
        header = [*_COLUMNS, *(("before", "after") if measured else ())]
        return header, [self._row(f, measured) for f in self.findings]

    def _row(self, f: Finding, measured: bool) -> list[str]:
        difference = "-" if f.difference is None else f"{f.difference:.3g}"
        done = "yes" if f.change is None else f"yes: ONNX Runtime's result differs by {f.change:.3g}"
        row = [f.pattern, _shorten(f.where), done if f.replaced else f"no: {f.why}", difference]
        return [*row, *(_time(t) for t in (f.before, f.after))] if measured else row

    def lines(self) -> list[str]:
        """Returns the lines below the table."""
        done, found = sum(self.replaced.values()), len(self.findings)
        nothing = "found nothing to replace" if self.lists else "found nothing that polyop computes faster"
        lines = [f"replaced {done} of {found} found" if found else nothing]
        if self.moved:
            lines.append(f"moved {self.moved} node{'s' if self.moved > 1 else ''} into the domain trt.plugins")
        lines += [f"equal {how}: largest difference {d:.3g}" for how, d in self.differences.items()]
        if self.before and self.after:
            lines.append(f"the model: {_time(self.before)} -> {_time(self.after)}, {_ratio(self.before, self.after)}")
        return lines + self.inputs + self.notes

    def __str__(self) -> str:
        header, rows = self.table()
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
        table = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in [header, *rows]
        ]
        return "\n".join([*(table if rows else []), *self.lines()])

    def as_json(self) -> dict[str, Any]:
        header, rows = self.table()
        return {
            "findings": [vars(f) for f in self.findings],
            "replaced": dict(self.replaced),
            "differences": self.differences,
            "before": self.before,
            "after": self.after,
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "moved": self.moved,
            "needs_polyop": self.needs_polyop,
            "notes": self.notes,
            "details": self.details(),
            "table": {"header": header, "rows": rows},
            "lines": self.lines(),
        }


def _shorten(where: str, max_length: int = 50) -> str:
    return where if len(where) <= max_length else f"…{where[1 - max_length :]}"


def _ratio(before: float, after: float) -> str:
    """Returns "3.12x faster", as `polyop bench --against` prints it."""
    text = f"{max(before / after, after / before):.2f}"
    return "as fast" if text == "1.00" else f"{text}x {'faster' if after < before else 'slower'}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.2f} s"
