# SPDX-License-Identifier: Apache-2.0
"""`polyop batch`: polyop.batch is the implementation."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyop._base.progress import bars
from polyop._commands import terminal
from polyop._commands.arguments import (
    MAX_THREADS,
    add_image_options,
    add_json_option,
    add_library_option,
    add_memory_option,
    add_provider_option,
    choice,
    image_options,
    integer,
    real,
)
from polyop._commands.errors import CommandError, ExitCode, usage
from polyop._commands.models import OLDEST_ONNXRUNTIME, check_inputs, check_nodes, check_onnxruntime
from polyop._commands.numbers import split_named

if TYPE_CHECKING:
    from onnx import ModelProto

    from polyop.batch import Cluster, Report
    from polyop.batch.drawings import Drawings

SUMMARY = "Run a model on many files, on all cores or on a Ray cluster"
NEEDS = "pip install 'polyop[batch]', and for --ray 'polyop[batch,ray]'"
FOOTER = """\
The same command continues where it was stopped, by Ctrl-C too: files with a newer result are not run again, and results are written
atomically. Files that fail are reported, and the exit code is 1. The command needs the packages of 'polyop[batch]',
and --ray those of 'polyop[batch,ray]'.

Examples:
  polyop batch srcnn3.onnx -i 'input=photos/**/*.jpg' -o large --format png --set factor=1,1,2,2
  polyop batch detector.onnx -i sweeps -o found --threads 2
  polyop batch app.onnx -i photos -o found --draw drawn --sheet sheet.jpg --csv found.csv
  polyop batch net.onnx -i 'shards/*.tar' -o out --ray 10.0.0.1:6379 --worker-cpus 4"""

_MAX_BATCH = 65536
_MAX_WORKERS = 65536
_MAX_GPUS = 64
_OF_DETECTIONS = ("draw", "sheet", "csv", "names")
_CLUSTER_OPTIONS = ("workers", "worker_cpus", "worker_gpus")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", help="the ONNX file")
    add(
        "-i",
        "--input",
        action="append",
        required=True,
        metavar="NAME=PATTERN",
        help="files, a folder, or a quoted pattern such as 'photos/**/*.jpg': images, .npy, .npz, .bin (points), .tar "
        "(WebDataset), .parquet, videos (with OpenCV); for a second input one file, which is the same for all",
    )
    add("-o", "--output", required=True, metavar="FOLDER", help="the folder of results, one file for each input file")
    add(
        "--set", action="append", default=[], metavar="NAME=V,V,…", help="an input from numbers, the same for all files"
    )
    add("--keep", action="append", default=[], metavar="OUTPUT", help="the name of an output to write (default: all)")
    add(
        "--format",
        type=choice("npz", "npy", "png", "jpg"),
        default="npz",
        metavar="FORMAT",
        help="of results: npz (default), or of one output npy, png or jpg",
    )
    add(
        "--max-batch",
        dest="batch",
        type=integer(1, _MAX_BATCH),
        default=0,
        metavar="N",
        help="the maximum number of samples in one run, if the model's first dimension is dynamic (default: 8)",
    )
    add(
        "--threads",
        type=integer(1, MAX_THREADS),
        default=0,
        metavar="N",
        help="threads of one run; the remaining cores run other samples (default: 1)",
    )
    add(
        "--draw",
        metavar="FOLDER",
        help="draw the detections of a file of `polyop attach --image` on each image or video",
    )
    add("--sheet", metavar="FILE", help="a contact sheet of the drawings, .png or .jpg")
    add("--csv", metavar="FILE", help="a table of the detections")
    add("--names", metavar="FILE", help="names of the classes: a text file, or coco")
    add("--strict", action="store_true", help="stop at the first file that fails, instead of skipping it")
    add_image_options(parser)
    add_memory_option(
        parser,
        "how much memory what is read and not yet written may take (default: 1.07; a file alone 0.27, and 64 times its size)",
    )
    add_provider_option(parser)
    add_library_option(parser)
    add(
        "--accelerate",
        action="store_true",
        help="replace ONNX Runtime's own kernels by polyop's (RoiAlign, GridSample, …)",
    )
    add(
        "--ray",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="run on the Ray cluster of this address; without an address on this machine",
    )
    add(
        "--workers",
        type=integer(1, _MAX_WORKERS),
        metavar="N",
        help="processes of the cluster that run the model (default: all cores)",
    )
    add("--worker-cpus", type=integer(1, MAX_THREADS), metavar="N", help="cores of a worker (default: 1)")
    add("--worker-gpus", type=real(0, _MAX_GPUS), metavar="X", help="GPUs of a worker (default: 0)")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    try:
        return _run(options)
    except KeyboardInterrupt:
        raise CommandError(ExitCode.INTERRUPTED, "interrupted; the same command continues") from None


def _run(options: argparse.Namespace) -> int:
    for name in _CLUSTER_OPTIONS:
        if options.ray is None and getattr(options, name) is not None:
            raise usage(f"--{name.replace('_', '-')} requires --ray")
    images = image_options(options)
    model = check_nodes(options.model, options.ops)
    _check_names(options, model)
    drawings = _drawings(options, model)
    check_onnxruntime(OLDEST_ONNXRUNTIME)
    from polyop import batch

    cluster = None
    if options.ray is not None:
        cluster = batch.Cluster(options.ray, options.workers or 0, options.worker_cpus or 1, options.worker_gpus or 0)
    report = _report(options, images, cluster)
    if drawings is not None:
        _draw(options, drawings)
    if options.json:
        terminal.print_json({**report.as_json(), "lines": report.lines()})
    else:
        print("\n".join(report.lines()))
        print(f"{terminal.green('wrote')} {options.output}")
    return ExitCode.FAILED if report.failed else ExitCode.OK


def _check_names(options: argparse.Namespace, model: ModelProto) -> None:
    """Raises CommandError for a name that no input of the model has."""
    from polyop.batch.sources import Input

    sets = (split_named("--set", text)[0] for text in options.set)
    check_inputs(model, [*filter(None, (Input.parse(text).name for text in options.input)), *sets])


def _drawings(options: argparse.Namespace, model: ModelProto) -> Drawings | None:
    """Returns what to draw with, or None. Raises CommandError before the batch runs if its results cannot be drawn."""
    given = [f"--{name}" for name in _OF_DETECTIONS if getattr(options, name)]
    if not given:
        return None
    if options.format != "npz" or options.keep:
        raise usage(f"{', '.join(given)}: expected --format npz and all outputs")
    for name in ("sheet", "csv"):
        extensions = (".png", ".jpg", ".jpeg") if name == "sheet" else (".csv",)
        file = getattr(options, name)
        if file and Path(file).suffix.lower() not in extensions:
            raise usage(f"--{name}: expected a file {' or '.join(extensions)}, got '{file}'")
    _check_not_inputs(options)
    if not {"detection_boxes", "segmentation"} & {output.name for output in model.graph.output}:
        raise CommandError(
            ExitCode.FAILED,
            f"{options.model}: {', '.join(given)}: expected an output detection_boxes or segmentation, got none",
            "`polyop attach --image` writes a file with this output",
        )
    from polyop._commands.draw_detections import noted_names
    from polyop.attaching.names import read_names
    from polyop.batch.drawings import Drawings

    noted = {entry.key: entry.value for entry in model.metadata_props}.get("polyop.detections", "")
    names = read_names(options.names) if options.names else noted_names(noted)
    return Drawings(Path(options.output), names, Path(options.draw) if options.draw else None, options.memory)


def _check_not_inputs(options: argparse.Namespace) -> None:
    """Raises CommandError if a drawing would be an input of the next run."""
    from polyop.batch.sources import Input

    for name, file in (("draw", options.draw and Path(options.draw, "drawing.png")), ("sheet", options.sheet)):
        if file and any(given.finds(Path(file)) for given in map(Input.parse, options.input) if not given.is_one_file):
            raise usage(
                f"--{name}: '{getattr(options, name)}' would be an input of the next run", "choose another folder"
            )


def _draw(options: argparse.Namespace, drawings: Drawings) -> None:
    """Draws the results of all files, also those of an earlier run, and writes the sheet and the table."""
    from polyop._onnx.atomic_file import prepare_folder, write_atomically
    from polyop.attaching.errors import AttachError
    from polyop.batch import sources
    from polyop.batch.images import encode

    streams, _ = sources.split([sources.Input.parse(text) for text in options.input])
    try:
        for task in sources.tasks(streams, Path(options.output), options.format):
            drawings.add(task)
    except AttachError as error:
        raise CommandError(ExitCode.FAILED, f"{options.model}: {error}", error.hint) from error
    for file in filter(None, (options.sheet, options.csv)):
        prepare_folder(Path(file))
    if options.sheet:
        kind = "png" if Path(options.sheet).suffix.lower() == ".png" else "jpg"
        write_atomically(Path(options.sheet), encode(drawings.sheet(), kind))
    if options.csv:
        write_atomically(Path(options.csv), drawings.table().encode())


def _report(options: argparse.Namespace, images: dict[str, Any], cluster: Cluster | None) -> Report:
    from polyop import batch

    with ExitStack() as stack:
        progress: dict[str, Any] = {"progress": step} if (step := bars(stack)) else {}
        return batch.run(
            options.model,
            options.input,
            options.output,
            sets=options.set,
            outputs=options.keep,
            format=options.format,
            batch=options.batch,
            threads=options.threads,
            strict=options.strict,
            memory=options.memory,
            **images,
            provider=options.provider,
            libraries=options.ops,
            accelerate=options.accelerate,
            cluster=cluster,
            **progress,
        )
