"""What works on tasks: on this machine alone, or on each of many."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from polyop.batch.errors import BatchError
from polyop.batch.interface import SessionOptions, open_model
from polyop.batch.loop import Loop
from polyop.batch.pictures import PictureOptions
from polyop.batch.reading import Reader
from polyop.batch.report import Report
from polyop.batch.runner import Runner
from polyop.batch.sources import Task


@dataclass(frozen=True)
class Job:
    """What is to be done with each sample. It can be sent to other machines."""

    model: str
    stream: str = ""  # the input that is run through; "": the only one, or those that the samples name
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()  # that are kept; () is all
    format: str = "npz"
    batch: int = 0  # the most samples of one run; 0 chooses
    strict: bool = False
    pictures: PictureOptions = field(default_factory=PictureOptions)
    session: SessionOptions = field(default_factory=SessionOptions)


class Worker:
    """A model that is loaded, and the loop that runs tasks through it."""

    def __init__(self, job: Job, processors: int | None = None) -> None:
        """processors: how many it may use; None: as many as the process may. Each run takes session.threads of them, 1 if
        nothing is said. Raises BatchError for what cannot work for any sample."""
        start = time.perf_counter()
        processors = processors or len(os.sched_getaffinity(0))
        self.threads = min(job.session.threads or 1, processors)
        self._runs = max(1, processors // self.threads)
        model = open_model(job.model, replace(job.session, threads=self.threads))
        outputs = model.chosen(job.outputs)
        if job.format != "npz" and len(outputs) > 1:
            raise BatchError(f"a .{job.format} file holds one output, the model has {', '.join(outputs)}",
                             f"say --output {outputs[0]}, or take --format npz")  # fmt: skip
        runner = Runner(model, job.constants, outputs, job.batch)
        self._reader = Reader(model, job.stream, list(job.constants), job.pictures)
        self._loop = Loop(self._reader, runner, job.format, self._runs, processors, job.strict)
        self._load_seconds = time.perf_counter() - start

    def check(self, tasks: Sequence[Task]) -> None:
        """Raises BatchError if files hold one value and the model wants more."""
        one = next((task for task in tasks if not task.is_shard and task.kind != ".npz"), None)
        missing = [f"{n}: {self._reader.model.inputs[n]}" for n in self._reader.free if n != self._reader.stream]
        if one is not None and missing:
            raise BatchError(
                f"no value for {', '.join(missing)}", "give numbers: --set NAME=1,2, or one file: -i NAME=FILE"
            )

    def run(self, tasks: Sequence[Task], step: Callable[[int], object] = lambda done: None) -> Report:
        report = self._loop.run(tasks, step)
        report.load_seconds, report.threads = self._load_seconds, self.threads * self._runs
        return report

    def close(self) -> None:
        self._loop.close()
