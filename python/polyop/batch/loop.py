# SPDX-License-Identifier: Apache-2.0
"""The loop of one machine: decodes files, runs the model and writes results at the same time."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from polyop._onnx.atomic_file import AtomicFile, write_atomically
from polyop.batch.errors import BatchError, OutputError, SampleError, describe_error
from polyop.batch.images import Format
from polyop.batch.reading import Reader, Sample
from polyop.batch.report import Report
from polyop.batch.runner import Arrays, Runner
from polyop.batch.sources import Task
from polyop.batch.writing import Shard, TarWriter, encoded

_MAX_BYTES = 1 << 30  # of what is read and not yet written; a single sample may be larger
_MAX_BATCH = 64 << 20
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""The errors of writing that every other file would have as well."""


@dataclass
class _Item:
    """A sample in progress. `bytes` is what it holds: the content of its files, its arrays or its results."""

    task: Task
    index: int
    key: str
    decode: Callable[[], Arrays] | None
    bytes: int
    arrays: Arrays | None = None
    error: Exception | None = None

    @property
    def name(self) -> str:
        return f"{self.task.source}: {self.key}" if self.task.is_shard else str(self.task.source)


def _size(result: object) -> int:
    """Returns the bytes of arrays, or of an encoded result."""
    if isinstance(result, Mapping):
        return sum(array.nbytes for array in result.values())
    return len(result) if isinstance(result, bytes) else 0


class Loop:
    """Runs tasks. The caller's thread schedules; thread pools run the model, decode and write."""

    def __init__(
        self, reader: Reader, runner: Runner, format: str, runs: int, helpers: int, strict: bool, memory: int = 0
    ) -> None:
        """runs: the number of concurrent runs of the model. helpers: the number of threads that decode and write.
        memory: the limit in bytes of what is read and not yet written; 0: automatic."""
        self._memory = memory or _MAX_BYTES
        self._reader, self._runner, self._format, self._strict = reader, runner, format, strict
        self._runs, self._most = runs, 2 * helpers + 2 * runs * runner.batch
        self._helpers, self._runners = ThreadPoolExecutor(helpers), ThreadPoolExecutor(runs)
        self._image = reader.output_format(runner.outputs[0]) if format in ("png", "jpg") else Format()

    def close(self) -> None:
        self._helpers.shutdown(cancel_futures=True)
        self._runners.shutdown(cancel_futures=True)

    def run(self, tasks: Sequence[Task], step: Callable[[int], object] = lambda done: None) -> Report:
        """Runs the tasks and returns a report. Calls `step` with the number of finished tasks.

        Raises BatchError at the first failure if the loop is strict, and OutputError if results cannot be written. Any
        exception removes incomplete files.
        """
        state = _Run(self, step)
        start = time.perf_counter()
        try:
            state.all(tasks)
        except BaseException as error:
            state.abandon()
            if isinstance(error, OSError):  # of a shard's results, which this thread writes
                raise OutputError("the folder of results", error) from error
            raise
        state.report.seconds = time.perf_counter() - start
        state.report.largest_batch, state.report.note = self._runner.largest, self._runner.note
        return state.report


class _Run:
    """One pass over tasks."""

    def __init__(self, loop: Loop, step: Callable[[int], object]) -> None:
        self.report = Report()
        self._loop, self._step = loop, step
        self._events: SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]]] = SimpleQueue()
        self._groups: dict[object, list[_Item]] = {}
        self._shards: dict[Task, Shard] = {}
        self._in_flight = self._reading = self._running = self._bytes = self._done = 0

    def all(self, tasks: Sequence[Task]) -> None:
        for task, sample in self._samples(tasks):
            while self._in_flight >= self._loop._most or (self._in_flight and self._bytes > self._loop._memory):
                self._wait()
            self._in_flight += 1
            self._reading += 1
            item = _Item(task, sample.index, sample.key, sample.decode, sample.size)
            self._bytes += item.bytes
            del sample  # it holds the content of its files
            self._loop._helpers.submit(self._decode, item)
            while not self._events.empty():
                self._turn()
        while self._in_flight:
            self._wait()

    def abandon(self) -> None:
        for shard in self._shards.values():
            shard.abandon()

    def _samples(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Sample]]:
        for task in tasks:
            if task.is_shard:
                yield from self._of_shard(task)
            else:
                yield from ((task, sample) for sample in self._loop._reader.samples(task))

    def _of_shard(self, task: Task) -> Iterator[tuple[Task, Sample]]:
        shard = self._shards[task] = self._open(task)
        count = 0
        try:
            for sample in self._loop._reader.samples(task):
                count += 1
                yield task, sample
        except (SampleError, OSError) as error:  # a damaged shard has no results
            self._fail(str(task.source), error)
            self._bytes -= shard.held
            self._shards.pop(task).abandon()
            self._count_task()
            return
        shard.count = count
        self._close_if_complete(task)

    def _open(self, task: Task) -> Shard:
        task.result.parent.mkdir(parents=True, exist_ok=True)
        file = AtomicFile(task.result)
        if task.kind != ".parquet":
            return Shard(file, TarWriter(file.partial, self._loop._format))
        from polyop.batch import tables

        return Shard(file, tables.Writer(file.partial))

    # ---- in the pools' threads --------------------------------------------------------------------------------------

    def _decode(self, item: _Item) -> None:
        start = time.perf_counter()
        assert item.decode is not None
        try:
            item.arrays = item.decode()
        except Exception as error:
            item.error = error
        item.decode = None
        self._events.put((self._decoded, (item, time.perf_counter() - start)))

    def _execute(self, items: list[_Item]) -> None:
        start = time.perf_counter()
        try:
            answers = self._loop._runner.run([item.arrays for item in items if item.arrays is not None])
        except Exception as error:
            answers = [error] * len(items)
        self._events.put((self._answered, (items, answers, time.perf_counter() - start)))

    def _write(self, item: _Item, answer: Arrays) -> None:
        """Writes the result of a file, or converts that of a shard's sample for the shard's writer."""
        start = time.perf_counter()
        result: object = None
        try:
            if item.task.kind == ".parquet":
                result = answer
            else:
                result = data = encoded(answer, self._loop._format, self._loop._image)
                if not item.task.is_shard:
                    item.task.result.parent.mkdir(parents=True, exist_ok=True)
                    write_atomically(item.task.result, data)
        except OSError as error:
            result = OutputError(item.task.result, error) if error.errno in _NO_ROOM else error
        except Exception as error:
            result = error
        self._events.put((self._written, (item, result, time.perf_counter() - start)))

    # ---- in the caller's thread --------------------------------------------------------------------------------------

    def _wait(self) -> None:
        """Waits for an event.

        If no sample is being decoded, starts incomplete batches, because no other sample can fill them.
        """
        while self._groups and not self._reading and self._running < self._loop._runs:
            self._start(max(self._groups, key=lambda key: len(self._groups[key])))
        self._turn()

    def _turn(self) -> None:
        handle, values = self._events.get()
        handle(*values)

    def _decoded(self, item: _Item, seconds: float) -> None:
        self._reading -= 1
        self.report.read_seconds += seconds
        if item.arrays is None:
            self._finish(item, item.error)
            return
        self._hold(item, _size(item.arrays))
        key = self._loop._runner.signature(item.arrays)
        group = self._groups.setdefault(key, [])
        group.append(item)
        if len(group) >= self._loop._runner.batch or sum(i.bytes for i in group) >= _MAX_BATCH:
            self._start(key)

    def _start(self, key: object) -> None:
        self._running += 1
        self._loop._runners.submit(self._execute, self._groups.pop(key))

    def _answered(self, items: list[_Item], answers: list[Arrays | Exception], seconds: float) -> None:
        self._running -= 1
        self.report.run_seconds += seconds
        for item, answer in zip(items, answers, strict=True):
            item.arrays = None
            if isinstance(answer, Exception):
                self._finish(item, answer)
            else:
                self._hold(item, _size(answer))
                self._loop._helpers.submit(self._write, item, answer)

    def _written(self, item: _Item, result: object, seconds: float) -> None:
        self.report.write_seconds += seconds
        self._finish(item, result)

    def _hold(self, item: _Item, size: int) -> None:
        self._bytes += size - item.bytes
        item.bytes = size

    def _finish(self, item: _Item, result: object) -> None:
        self._in_flight -= 1
        if isinstance(result, Exception):
            self._fail(item.name, result)
            result = None
        else:
            self.report.samples += 1
        shard = self._shards.get(item.task)
        if shard is None:  # a file, or a damaged shard
            self._hold(item, 0)
            if not item.task.is_shard:
                self._count_task()
            return
        self._hold(item, _size(result))  # until it is the next one to write
        self._bytes -= shard.put(item.index, item.key, result, item.bytes)
        self._close_if_complete(item.task)

    def _close_if_complete(self, task: Task) -> None:
        if self._shards[task].is_complete:
            self._shards.pop(task).close()
            self._count_task()

    def _count_task(self) -> None:
        self._done += 1
        self._step(self._done)

    def _fail(self, what: str, error: Exception) -> None:
        if isinstance(error, OutputError):
            raise error
        why = describe_error(error).replace(f"{what}: ", "")
        if self._loop._strict:
            raise BatchError(f"{what}: {why}", "without --strict it is reported and skipped")
        self.report.failed.append((what, why))
