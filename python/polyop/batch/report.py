# SPDX-License-Identifier: Apache-2.0
"""The report of a batch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

_SHOWN = 20


@dataclass
class Report:
    files: int = 0  # in total
    done_before: int = 0  # files with results of an earlier run
    samples: int = 0  # of this run: images, point clouds, rows
    failed: list[tuple[str, str]] = field(default_factory=list)  # sample and reason
    seconds: float = 0  # from the first file to the last
    load_seconds: float = 0  # for loading the model, before that
    read_seconds: float = 0  # summed over threads, like the next two
    run_seconds: float = 0
    write_seconds: float = 0
    largest_batch: int = 0
    workers: int = 1
    threads: int = 0  # per worker, that run the model
    note: str = ""

    def add(self, other: Report) -> None:
        """Adds a worker's report."""
        self.samples += other.samples
        self.failed += [(what, why) for what, why in other.failed]
        self.read_seconds += other.read_seconds
        self.run_seconds += other.run_seconds
        self.write_seconds += other.write_seconds
        self.largest_batch = max(self.largest_batch, other.largest_batch)
        self.threads = max(self.threads, other.threads)
        self.note = self.note or other.note

    def lines(self) -> list[str]:
        """Returns a human-readable summary."""
        rate = f", {self.samples / self.seconds:.1f} a second" if self.seconds and self.samples else ""
        where = (
            f"{self.workers} worker(s) of {self.threads} thread(s)" if self.workers > 1 else f"{self.threads} thread(s)"
        )
        lines = []
        if self.samples:
            lines.append(
                f"{self.samples} run in {self.seconds:.1f} s{rate}; {where}, up to {self.largest_batch} together"
            )
            share = [f"{name} {seconds / self.samples * 1000:.2f} ms" for name, seconds in self._parts()]
            lines.append(f"of each: {', '.join(share)}; loading took {self.load_seconds:.1f} s")
        if self.done_before:
            lines.append(f"{self.done_before} of {self.files} files were done before")
        if self.note and self.samples:
            lines.append(self.note)
        if self.failed:
            lines.append(f"{len(self.failed)} failed:")
            lines += [f"  {what}: {why}" for what, why in self.failed[:_SHOWN]]
        if len(self.failed) > _SHOWN:
            lines.append(f"  … and {len(self.failed) - _SHOWN} more")
        return lines

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def _parts(self) -> list[tuple[str, float]]:
        return [("reading", self.read_seconds), ("running", self.run_seconds), ("writing", self.write_seconds)]
