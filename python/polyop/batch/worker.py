# SPDX-License-Identifier: Apache-2.0
"""A worker runs tasks, on this machine or on each machine of a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from polyop._base.system import processors as available_processors
from polyop.batch.errors import BatchError
from polyop.batch.interface import open_model
from polyop.batch.job import Job
from polyop.batch.loop import Loop
from polyop.batch.reading import Reader
from polyop.batch.report import Report
from polyop.batch.runner import Runner
from polyop.batch.sources import Task


class Worker:
    """A loaded model and the loop that runs tasks through it."""

    def __init__(self, job: Job, processors: int | None = None) -> None:
        """Loads the model. Raises BatchError if no sample can run.

        processors: the number of processors to use; None: all that the process may use. Each run uses session.threads
            of them, 1 by default.
        """
        start = time.perf_counter()
        processors = processors or available_processors()
        self.threads = min(job.session.threads or 1, processors)
        self._runs = max(1, processors // self.threads)
        model = open_model(job.model, replace(job.session, threads=self.threads))
        outputs = model.chosen(job.outputs)
        if job.format != "npz" and len(outputs) > 1:
            raise BatchError(
                f"format {job.format}: expected one output, got {', '.join(outputs)}",
                f"choose one (--keep {outputs[0]}), or take npz",
            )
        runner = Runner(model, job.constants, outputs, job.batch)
        self._reader = Reader(model, job.stream, list(job.constants), job.images, job.memory)
        self._loop = Loop(self._reader, runner, job.format, self._runs, processors, job.strict, job.memory)
        self._load_seconds = time.perf_counter() - start

    def check(self, tasks: Sequence[Task]) -> None:
        """Raises BatchError if files hold one value and the model has more inputs."""
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
