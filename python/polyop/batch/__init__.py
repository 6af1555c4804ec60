# SPDX-License-Identifier: Apache-2.0
"""Runs a model on many files: on all cores of this machine, or on a Ray cluster.

from polyop import batch

report = batch.run("srcnn3.onnx", ["photos/**/*.jpg"], "large", constants={"factor": [1, 1, 3, 3]}, format="png")

Each input file has one file of results, in the same subfolder. Images, .npy, .npz and .bin files (points, float32
without a header) hold one sample; .tar files (WebDataset) and Parquet files hold many. Results are written atomically,
so that a stopped run can continue. `polyop batch` is its command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from polyop._onnx.atomic_file import remove_stale
from polyop.batch import folder, sources
from polyop.batch.errors import BatchError, SampleError
from polyop.batch.images import ImageOptions, Size
from polyop.batch.interface import SessionOptions, open_model
from polyop.batch.job import Cluster, Job
from polyop.batch.reading import read_constant
from polyop.batch.report import Report
from polyop.batch.worker import Worker

__all__ = ["BatchError", "Cluster", "Report", "SampleError", "run"]

Progress = Callable[[str, int, int], Any]


def run(
    model: str | Path,
    inputs: Sequence[str],
    output: str | Path,
    *,
    constants: Mapping[str, Any] | None = None,
    sets: Sequence[str] = (),
    outputs: Sequence[str] = (),
    format: str = "npz",
    batch: int = 0,
    threads: int = 0,
    strict: bool = False,
    memory: int = 0,
    layout: str | None = None,
    range: tuple[float, float] | None = None,
    color: str | None = None,
    resize: Size | None = None,
    letterbox: Size | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    provider: str = "",
    libraries: Sequence[str] = (),
    accelerate: bool = False,
    cluster: Cluster | None = None,
    progress: Progress = lambda phase, done, steps: None,
) -> Report:
    """Runs the model on every file. Returns a report.

    Args:
        model: an ONNX file.
        inputs: "PATTERN" or "NAME=PATTERN". A pattern is a file, a folder, or contains *, ** or ?. The files of one
            input are samples; a single file of another input is its value for all samples.
        output: the folder of results. It belongs to one model and its options. Files with newer results are skipped.
        constants, sets: values for all samples, as arrays or as "NAME=1,1,3,3".
        outputs: the outputs to keep; all by default.
        format: of results: npz, or npy, png or jpg for one output. The results of a Parquet file are rows of lists with
            their shapes.
        batch: the maximum number of samples per run, if the model's first dimension is dynamic; 0: automatic.
        threads: per run. The remaining processors execute other runs at the same time.
        strict: the first failing file ends the batch; otherwise it is reported and skipped.
        memory: how many bytes the contents of a file, and all that is read and not yet written, may take; 0: for a file
            256 MiB and 64 times its size, 1 GiB for all.
        layout, range, color: of images, as in `polyop run`; by default from the model's metadata and shapes.
        resize, letterbox: scales images to (height, width) or to the extents of the "model", without or with their
            aspect ratio.
        mean, std: subtracted from the values of images, and divided by: one number, or one per channel.
        provider: an execution provider of ONNX Runtime, "NAME[:key=value,…]"; by default the CPU's.
        libraries, accelerate: as in `polyop run`.
        cluster: runs on Ray. All machines must see the files under the same paths.
        progress: called with the phase, the number of finished files and their total number.

    Raises BatchError if no file can run, or, if `strict`, for the first file that fails.
    """
    streams, files = sources.split([sources.Input.parse(text) for text in inputs])
    images = ImageOptions(layout, range, color, resize, letterbox,
                          None if mean is None else tuple(mean), None if std is None else tuple(std))  # fmt: skip
    session = SessionOptions(threads, tuple(str(Path(library).resolve()) for library in libraries), accelerate,
                             provider=provider)  # fmt: skip
    values = _constants(model, files, sets, constants or {}, images, session, memory)
    path = str(Path(model).resolve()) if cluster else str(model)
    job = Job(path, streams[0].name, values, tuple(outputs), format, batch, strict, memory, images, session)
    target = Path(output).resolve() if cluster else Path(output)
    todo = sources.tasks(streams, target, format)
    if cluster:  # workers have other working folders
        todo = [sources.Task(task.source.resolve(), task.result) for task in todo]
    worker = Worker(job)
    try:
        worker.check(todo)
        with folder.claimed(target, job) as owner:
            remove_stale(target)
            remaining = [task for task in todo if not task.is_done]

            def step(done: int) -> None:
                progress("files", len(todo) - len(remaining) + done, len(todo))

            step(0)
            if cluster:
                from polyop.batch.cluster import run_tasks

                report = run_tasks(job, remaining, cluster, step)
                remove_stale(target, everywhere=True)
            else:
                report = worker.run(remaining, step)
            report.files, report.done_before = len(todo), len(todo) - len(remaining)
            folder.note(target, owner, report)
    finally:
        worker.close()
    return report


def _constants(
    path: str | Path,
    files: Sequence[sources.Input],
    sets: Sequence[str],
    given: Mapping[str, Any],
    images: ImageOptions,
    session: SessionOptions,
    memory: int,
) -> dict[str, Any]:
    """Returns the values for all samples, in the types of the model."""
    if not (files or sets or given):
        return {}
    import numpy as np

    model = open_model(path, session)
    result = {file.name: read_constant(model, file.name, Path(file.pattern), images, memory) for file in files}
    result |= model.set_values(sets)
    for name, value in given.items():
        try:
            result[name] = model.input(name).take(np.asarray(value), "constants")
        except SampleError as error:
            raise BatchError(str(error)) from None
    return result
