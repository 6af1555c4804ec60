# SPDX-License-Identifier: Apache-2.0
"""`polyop triton`: polyop.triton is the implementation."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from polyop._commands import terminal
from polyop._commands.arguments import MAX_THREADS, add_json_option, add_library_option, choice, integer
from polyop._commands.errors import ExitCode
from polyop._commands.models import OLDEST_ONNXRUNTIME, check_file, check_nodes, check_onnxruntime

SUMMARY = "Write a model repository for Triton Inference Server"
NEEDS = "pip install 'polyop[batch]'"
FOOTER = """\
The command needs onnx and onnxruntime: pip install 'polyop[batch]'.

Examples:
  polyop triton srcnn.onnx -o repository --max-batch 16 --at /models
  polyop triton srcnn3.onnx -o repository --backend python --set factor=1,1,2,2"""

_MAX_BATCH = 65536
_MAX_DELAY = 10_000_000
_MAX_INSTANCES = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", help="an ONNX file, or a TensorRT engine of `polyop convert`")
    add("-o", "--output", required=True, metavar="FOLDER", help="the repository; other models in it stay")
    add("--name", default="", help="of the model (default: the file's)")
    add(
        "--backend",
        type=choice("onnxruntime", "python"),
        default="onnxruntime",
        metavar="BACKEND",
        help="onnxruntime (default), or python: Triton's Python backend with the package polyop; engines: tensorrt",
    )
    add(
        "--set",
        action="append",
        default=[],
        metavar="NAME=V,V,…",
        help="an input that becomes a constant with these values",
    )
    add_library_option(parser)
    add(
        "--max-batch",
        type=integer(1, _MAX_BATCH),
        default=8,
        metavar="N",
        help="the maximum number of requests in a batch, if the model's first dimension is dynamic (default: 8)",
    )
    add(
        "--delay",
        type=integer(0, _MAX_DELAY),
        default=1000,
        metavar="N",
        help="microseconds that a request waits for others (default: 1000)",
    )
    add(
        "--instances",
        type=integer(1, _MAX_INSTANCES),
        default=1,
        metavar="N",
        help="number of instances that run at the same time (default: 1)",
    )
    add(
        "--threads",
        type=integer(1, MAX_THREADS),
        default=0,
        metavar="N",
        help="threads of one instance (default: all cores)",
    )
    add("--gpu", action="store_true", help="instances on GPUs, one for each")
    add("--at", default="", metavar="FOLDER", help="the path of the repository on the server (default: its path here)")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    if Path(options.model).suffix in (".engine", ".plan"):
        check_file(options.model)
    else:
        check_nodes(options.model, options.ops)
    check_onnxruntime(OLDEST_ONNXRUNTIME)
    from polyop.triton import write_repository

    written = write_repository(
        options.model,
        options.output,
        name=options.name,
        backend=options.backend,
        sets=options.set,
        libraries=options.ops,
        largest_batch=options.max_batch,
        delay=options.delay,
        instances=options.instances,
        threads=options.threads,
        gpu=options.gpu,
        at=options.at,
    )
    if options.json:
        terminal.print_json(asdict(written))
        return ExitCode.OK
    for file in written.files:
        print(f"{terminal.green('wrote')} {file}")
    for note in written.notes:
        print(note)
    print(f"start it with\n  {written.command}")
    return ExitCode.OK
