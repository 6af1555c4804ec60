"""A batch on Ray: each worker runs files as one machine does, and writes their results where all machines see them.

What passes through Ray are names of files and reports. When a worker or its machine goes, Ray runs its files again; those that it had
finished are there already, so that nothing is lost and nothing is done twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyop.batch.errors import BatchError
from polyop.batch.report import Report
from polyop.batch.sources import Task
from polyop.batch.worker import Job, Worker

if TYPE_CHECKING:
    from polyop.batch import Cluster

_MOST_AT_ONCE = 256  # files that a worker gets: what Ray does for them is then small, and little is repeated


class TaskActor:
    """A worker on the cluster; it has the processors and the GPU that Ray granted it."""

    def __init__(self, job: Job) -> None:
        from polyop.ray import granted

        processors, gpu = granted()
        threads = job.session.threads or (processors if gpu else 0)
        self._worker = Worker(replace(job, session=replace(job.session, threads=threads, gpu=gpu)), processors)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        tasks = [Task(Path(s), Path(r)) for s, r in zip(batch["source"], batch["result"], strict=True)]
        left = [task for task in tasks if not task.is_done]  # of a worker that went while it ran these
        try:
            report = self._worker.run(left).as_json()
        except BatchError as error:
            report = {"error": str(error), "hint": error.hint}
        return {"files": [len(tasks)], "report": [json.dumps(report)]}


def run_tasks(job: Job, tasks: Sequence[Task], cluster: Cluster, step: Callable[[int], object]) -> Report:
    """Raises BatchError if there is no Ray, no such cluster, or no room on it."""
    from polyop.ray import connection

    report = Report()
    with connection(cluster.address) as ray:
        report.workers = _workers(ray, cluster)
        if not tasks:
            return report
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        at_once = max(1, min(_MOST_AT_ONCE, len(tasks) // (4 * report.workers)))
        rows = ray.data.from_items([{"source": str(task.source), "result": str(task.result)} for task in tasks],
                                   override_num_blocks=-(-len(tasks) // at_once))  # fmt: skip
        answers = rows.map_batches(TaskActor, fn_constructor_args=(job,), batch_size=at_once,
                                   compute=ray.data.ActorPoolStrategy(size=report.workers),
                                   num_cpus=cluster.processors, num_gpus=cluster.gpus)  # fmt: skip
        done, start = 0, time.perf_counter()
        for answer in answers.iter_rows():
            said = json.loads(answer["report"])
            if "error" in said:
                raise BatchError(said["error"], said["hint"])
            part = Report(**said)
            report.add(part)
            report.load_seconds = max(report.load_seconds, part.load_seconds)
            done += answer["files"]
            step(done)
        report.seconds = time.perf_counter() - start
    return report


def _workers(ray: Any, cluster: Cluster) -> int:
    """How many there are to be, or as many as there is room for."""
    there = ray.cluster_resources()
    room = int(there.get("CPU", 0) // cluster.processors)
    if cluster.gpus:
        room = min(room, int(there.get("GPU", 0) // cluster.gpus))
    if room < max(1, cluster.workers):
        has = f"{there.get('CPU', 0):g} CPUs and {there.get('GPU', 0):g} GPUs"
        wanted = f"{max(1, cluster.workers)} worker(s) of {cluster.processors} CPU(s) and {cluster.gpus:g} GPU(s)"
        raise BatchError(f"the cluster has {has}, too few for {wanted}", "say fewer --workers or smaller ones")
    return cluster.workers or room
