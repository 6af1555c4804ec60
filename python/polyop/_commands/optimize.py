# SPDX-License-Identifier: Apache-2.0
"""`polyop optimize`: polyop.optimizing is the implementation."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from polyop._base.progress import bars
from polyop._commands import terminal
from polyop._commands.arguments import (
    MAX_THREADS,
    add_image_options,
    add_json_option,
    add_library_option,
    add_memory_option,
    choice,
    integer,
    real,
)
from polyop._commands.errors import ExitCode, usage
from polyop._commands.models import (
    OLDEST_ONNXRUNTIME,
    check_inputs,
    check_nodes,
    check_onnxruntime,
    check_output,
)
from polyop._commands.numbers import parse_shape, split_named

SUMMARY = "Replace what polyop computes faster in a model"
NEEDS = "pip install 'polyop[optimize]'"
FOOTER = """\
Every replacement is compared with the nodes that it replaces, and the model with the original. What differs is not
replaced; with --without that is an error. Inputs are synthetic unless -i or --set give them; --shape gives their
shapes. A model in which nothing is replaced is copied unchanged. The command needs onnx, onnx-ir and onnxruntime: pip install 'polyop[optimize]'.

Examples:
  polyop optimize detr.onnx -o fast.onnx --measure
  polyop optimize net.onnx -o fast.onnx --shape x=1x3x640x640 --threads 2
  polyop optimize detr.onnx -o trt.onnx --runtime tensorrt
  polyop bench net.onnx --against fast.onnx"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", help="the ONNX file, of standard operators")
    add("-o", "--output", required=True, metavar="FILE", help="the file of the faster model")
    add(
        "-i",
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="an image (.png .jpg), .npy or .npz; or NAME=random, NAME=zeros",
    )
    add("--set", action="append", default=[], metavar="NAME=V,V,…", help="an input from numbers")
    add("--shape", action="append", default=[], metavar="NAME=1x3x224x224", help="the shape of a synthetic input")
    add_image_options(parser)
    add_memory_option(parser)
    add(
        "--runtime",
        type=choice("onnxruntime", "tensorrt", "webgpu", "directml", "coreml", "openvino"),
        default="onnxruntime",
        metavar="RUNTIME",
        help="onnxruntime (default); tensorrt: deformable attention becomes NVIDIA's plugin, and what TensorRT refuses "
        "is listed; webgpu, directml, coreml or openvino: standard nodes that the runtime lacks or was reported to "
        "compute wrong become other standard nodes",
    )
    add(
        "--without",
        action="append",
        default=[],
        metavar="OP,OP,…",
        help="standard operators, such as GridSample, of which no node may remain: they become other standard nodes",
    )
    add(
        "--plugins",
        type=choice("nvidia", "polyop"),
        metavar="WHOSE",
        help="with --runtime tensorrt: nvidia (default), or polyop, whose library has more plugins",
    )
    add(
        "--domain",
        type=choice("trt.plugins"),
        metavar="DOMAIN",
        help="with --runtime tensorrt: trt.plugins, in which ONNX Runtime's provider for TensorRT expects plugins (default: "
        "the nodes' own domains, which TensorRT ignores)",
    )
    add("--measure", action="store_true", help="also time every replacement, and the model before and after")
    add("-v", "--verbose", action="store_true", help="also print the full reasons for what was not replaced")
    add("--all", action="store_true", help="also replace what is too small to gain")
    add("--allow-fix", action="store_true", help="also replace where ONNX Runtime differs from the ONNX standard")
    add(
        "--rtol",
        dest="tolerance",
        type=real(0),
        default=1e-3,
        metavar="X",
        help="relative tolerance: how far elements of an output may differ, for each row, column or channel (default: 1e-3)",
    )
    add(
        "--threads",
        type=integer(1, MAX_THREADS),
        default=0,
        metavar="N",
        help="threads of ONNX Runtime (default: all cores)",
    )
    add_library_option(parser)
    add_json_option(parser)


def _target(options: argparse.Namespace) -> str:
    """Returns a value of polyop.optimizing.target.Target."""
    if options.plugins and options.runtime != "tensorrt":
        raise usage("--plugins: expected --runtime tensorrt, got --runtime onnxruntime")
    if options.domain and options.runtime != "tensorrt":
        raise usage("--domain: expected --runtime tensorrt, got --runtime onnxruntime")
    return "tensorrt-polyop" if options.plugins == "polyop" else str(options.runtime)


def run(options: argparse.Namespace) -> int:
    shapes = {}
    for text in options.shape:
        name, value = split_named("--shape", text)
        shapes[name] = parse_shape(value, f"--shape {text}")
    for text in options.set:
        split_named("--set", text)
    target = _target(options)
    model = check_nodes(options.model, options.ops)
    given = [*options.set, *(text for text in options.input if "=" in text)]
    check_inputs(model, [*shapes, *(text.partition("=")[0] for text in given)])
    check_onnxruntime(OLDEST_ONNXRUNTIME)
    check_output(options.model, options.output)
    from polyop._commands.inputs import read_inputs
    from polyop.optimizing import optimize
    from polyop.optimizing.files import Source

    inputs = read_inputs(options, model, shapes) if given or options.input else {}
    source = Source(model, Path(options.model))
    del model  # of a large model, `source` keeps only a copy on the disk
    with ExitStack() as stack:
        progress: dict[str, Any] = {"progress": step} if (step := bars(stack)) else {}
        report = optimize(
            source,
            options.output,
            inputs=inputs,
            shapes=shapes,
            all=options.all,
            allow_fix=options.allow_fix,
            measure=options.measure,
            tolerance=options.tolerance,
            threads=options.threads,
            target=target,
            without=[name.strip() for text in options.without for name in text.split(",") if name.strip()],
            plugin_domain=bool(options.domain),
            libraries=[str(Path(library).absolute()) for library in options.ops],
            **progress,
        )
    if options.json:
        terminal.print_json(report.as_json())
        return ExitCode.OK
    header, rows = report.table()
    if rows:
        print(terminal.table(header, rows), end="\n\n")
    print("\n".join(report.lines()))
    if details := report.details():
        print("\n".join(f"  {line}" for line in details) if options.verbose else "--verbose prints the full reasons")
    size = terminal.bytes_text(Path(options.output).stat().st_size)
    unchanged = "" if report.replaced or report.moved else ": the same file"
    print(f"{terminal.green('wrote')} {options.output} ({size}){unchanged}")
    if report.data:
        print(f"  its tensors are in {', '.join(report.data)}: keep the files together")
    return ExitCode.OK
