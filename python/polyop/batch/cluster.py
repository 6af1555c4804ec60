# SPDX-License-Identifier: Apache-2.0
"""A batch on Ray: each worker runs files as a single machine does, and writes results to shared storage.

Only file names and reports pass through Ray. When a worker or its machine fails, Ray reruns its files; the worker skips
those with results, so that nothing is lost or done twice.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from polyop.batch.errors import BatchError, describe_error
from polyop.batch.job import Cluster, Job
from polyop.batch.report import Report
from polyop.batch.sources import Task
from polyop.batch.worker import Worker

_MAX_AT_ONCE = 256  # files per call of a worker: Ray's overhead is small, and little is repeated after a failure


class TaskActor:
    """A worker on the cluster, with the processors and the GPU that Ray assigned."""

    def __init__(self, job: Job) -> None:
        processors, gpu = granted()
        threads = job.session.threads or (processors if gpu else 0)
        self._worker = Worker(replace(job, session=replace(job.session, threads=threads, gpu=gpu)), processors)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        tasks = [Task(Path(s), Path(r)) for s, r in zip(batch["source"], batch["result"], strict=True)]
        remaining = [task for task in tasks if not task.is_done]  # a failed worker may have finished some
        try:
            report = self._worker.run(remaining).as_json()
        except BatchError as error:
            report = {"error": str(error), "hint": error.hint}
        return {"files": [len(tasks)], "report": [json.dumps(report)]}


def run_tasks(job: Job, tasks: Sequence[Task], cluster: Cluster, step: Callable[[int], object]) -> Report:
    """Runs the tasks on a cluster. Raises BatchError if Ray is missing, or the cluster is unreachable or too small."""
    report = Report()
    with connection(cluster.address) as ray:
        report.workers = _workers(ray, cluster)
        if not tasks:
            return report
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        at_once = max(1, min(_MAX_AT_ONCE, len(tasks) // (4 * report.workers)))
        rows = ray.data.from_items(
            [{"source": str(task.source), "result": str(task.result)} for task in tasks],
            override_num_blocks=-(-len(tasks) // at_once),
        )
        answers = rows.map_batches(TaskActor, fn_constructor_args=(job,), batch_size=at_once,
                                   compute=ray.data.ActorPoolStrategy(size=report.workers),
                                   num_cpus=cluster.processors, num_gpus=cluster.gpus)  # fmt: skip
        done, start = 0, time.perf_counter()
        for answer in answers.iter_rows():
            reported = json.loads(answer["report"])
            if "error" in reported:
                raise BatchError(reported["error"], reported["hint"])
            part = Report(**reported)
            report.add(part)
            report.load_seconds = max(report.load_seconds, part.load_seconds)
            done += answer["files"]
            step(done)
        report.seconds = time.perf_counter() - start
    return report


def _workers(ray: Any, cluster: Cluster) -> int:
    """Returns the number of workers: the requested one, or as many as the cluster has resources for."""
    resources = ray.cluster_resources()
    room = int(resources.get("CPU", 0) // cluster.processors)
    if cluster.gpus:
        room = min(room, int(resources.get("GPU", 0) // cluster.gpus))
    if room < max(1, cluster.workers):
        has = f"{resources.get('CPU', 0):g} CPUs and {resources.get('GPU', 0):g} GPUs"
        needed = f"{max(1, cluster.workers)} worker(s) of {cluster.processors} CPU(s) and {cluster.gpus:g} GPU(s)"
        raise BatchError(f"cluster: expected {needed}, got {has}", "use fewer --workers or smaller ones")
    return cluster.workers or room


def granted() -> tuple[int, bool]:
    """Returns the number of processors that Ray assigned to this actor or task, at least 1, and True if it has a
    GPU."""
    import ray

    resources = ray.get_runtime_context().get_assigned_resources()
    return max(1, int(resources.get("CPU", 0))), bool(resources.get("GPU", 0))


@contextmanager
def connection(address: str = "") -> Iterator[Any]:
    """Yields Ray, connected to the cluster at this address; to a new one on this machine if it is "".

    Reuses an existing connection. Raises BatchError.
    """
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise BatchError(f"running on a cluster needs Ray: {error}", "pip install 'polyop[ray]'") from None
    is_new = not ray.is_initialized()
    if is_new:
        here = Path.cwd()
        try:
            own = {} if address else {"include_dashboard": False}
            if not {"", str(here)} & set(sys.path):
                os.chdir(here.anchor)  # Ray adds the current folder to the sys.path of workers
            ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **own)
        except Exception as error:  # Ray raises errors of any type
            raise BatchError(
                f"connecting to the Ray cluster at '{address or 'local'}' failed: {describe_error(error)}"
            ) from None
        finally:
            os.chdir(here)
    try:
        yield ray
    finally:
        if is_new:
            ray.shutdown()
