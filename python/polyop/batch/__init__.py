"""Runs a model on many files: on all cores of this machine, or on a cluster by Ray.

from polyop import batch

report = batch.run("srcnn3.onnx", ["photos/**/*.jpg"], "large", constants={"factor": [1, 1, 3, 3]}, format="png")

Each file gives one file of results, in the same folders: pictures, .npy, .npz and .bin files (points, float32 without a
header) one sample each; .tar files (WebDataset) and Parquet files many. A file of results is there when it is whole, so
that a run which was stopped goes on where it was. `polyop batch` is its command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyop._whole_files import sweep
from polyop.batch import folder, sources
from polyop.batch.errors import BatchError, SampleError
from polyop.batch.interface import SessionOptions, open_model
from polyop.batch.pictures import PictureOptions
from polyop.batch.reading import read_constant
from polyop.batch.report import Report
from polyop.batch.worker import Job, Worker

__all__ = ["BatchError", "Cluster", "Report", "SampleError", "run"]

Progress = Callable[[str, int, int], Any]


@dataclass(frozen=True)
class Cluster:
    """Where the work goes, if it is not this machine."""

    address: str = ""  # of a Ray cluster; "": one that is started here, and ends with the batch
    workers: int = 0  # 0: as many as the cluster's processors allow
    processors: int = 1  # of a worker
    gpus: float = 0  # of a worker


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
    layout: str | None = None,
    range: tuple[float, float] | None = None,
    color: str | None = None,
    libraries: Sequence[str] = (),
    accelerate: bool = False,
    cluster: Cluster | None = None,
    progress: Progress = lambda phase, done, steps: None,
) -> Report:
    """Runs the model on every file, and says what became of it.

    inputs: "PATTERN" or "NAME=PATTERN"; a pattern is a file, a folder or has *, ** and ?. One input is run through; a
        single file of another is its value for all samples.
    output: the folder of results. Files that have newer results in it are not run again; it belongs to one model and its options.
    constants, sets: values for all samples, as arrays or as "NAME=1,1,3,3".
    outputs: those that are kept; all if none is named.
    format: of results: npz, or of one output npy, png or jpg. A Parquet file's are rows of lists with their shapes.
    batch: the most samples of one run, where the model's first dimension is open; 0 chooses, 1 runs each alone.
    threads: of one run; the processors that are left run others at the same time.
    strict: the first file that fails ends the batch; else it is reported and left out.
    layout, range, color: of pictures, as in `polyop run`; where nothing is said the model's metadata and shapes do.
    libraries, accelerate: as in `polyop run`.
    cluster: runs on Ray. All machines must see the files under the same names.
    progress: is called with what is done, how many files of it, and of how many.

    Raises BatchError for what cannot work for any file, or, if `strict`, for the first that fails.
    """
    streams, files = sources.split([sources.Input.parse(text) for text in inputs])
    pictures = PictureOptions(layout, range, color)
    session = SessionOptions(threads, tuple(str(Path(library).resolve()) for library in libraries), accelerate)
    values = _constants(model, files, sets, constants or {}, pictures, session)
    path = str(Path(model).resolve()) if cluster else str(model)
    job = Job(path, streams[0].name, values, tuple(outputs), format, batch, strict, pictures, session)
    target = Path(output).resolve() if cluster else Path(output)
    todo = sources.tasks(streams, target, format)
    if cluster:  # workers have folders of their own
        todo = [sources.Task(task.source.resolve(), task.result) for task in todo]
    worker = Worker(job)
    try:
        worker.check(todo)
        owner = folder.claim(target, job)
        sweep(target)
        left = [task for task in todo if not task.is_done]

        def step(done: int) -> None:
            progress("files", len(todo) - len(left) + done, len(todo))

        step(0)
        if cluster:
            from polyop.batch.cluster import run_tasks

            report = run_tasks(job, left, cluster, step)
            sweep(target, everywhere=True)
        else:
            report = worker.run(left, step)
    finally:
        worker.close()
    report.files, report.done_before = len(todo), len(todo) - len(left)
    folder.note(target, owner, report)
    return report


def _constants(
    path: str | Path,
    files: Sequence[sources.Input],
    sets: Sequence[str],
    given: Mapping[str, Any],
    pictures: PictureOptions,
    session: SessionOptions,
) -> dict[str, Any]:
    """What is one value for all samples, in the types of the model."""
    if not (files or sets or given):
        return {}
    import numpy as np

    model = open_model(path, session)
    made = {file.name: read_constant(model, file.name, Path(file.pattern), pictures) for file in files}
    made |= model.set_values(sets)
    for name, value in given.items():
        try:
            made[name] = model.input(name).take(np.asarray(value), "constants")
        except SampleError as error:
            raise BatchError(str(error)) from None
    return made
