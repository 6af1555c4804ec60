# SPDX-License-Identifier: Apache-2.0
"""`polyop convert`: builds a TensorRT engine (polyop.tensorrt), or writes a model for OpenVINO."""

from __future__ import annotations

import argparse
import atexit
import ctypes
import json
import os
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyop import __version__
from polyop._base import isolation
from polyop._base.progress import bars
from polyop._commands import terminal
from polyop._commands.arguments import (
    add_image_options,
    add_json_option,
    add_library_option,
    add_memory_option,
    choice,
    integer,
    real,
)
from polyop._commands.errors import CommandError, ExitCode, usage
from polyop._commands.models import check_attributes, check_inputs, check_model, check_output, check_provided
from polyop._commands.numbers import parse_number, parse_shape, split_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from onnx import ModelProto

SUMMARY = "Build a TensorRT engine from a model, or write it for OpenVINO or in half precision"
NEEDS = "pip install tensorrt or tensorrt-rtx; with --runtime openvino: pip install openvino"
FOOTER = """\
The command needs tensorrt or tensorrt-rtx, or with --runtime openvino openvino. TensorRT-RTX also builds without a GPU. The
file MODEL.engine.json describes what the engine needs. `polyop run` runs an engine, and
`polyop verify MODEL.onnx --against MODEL.engine` compares it with the model.

Examples:
  polyop convert detector.onnx -o detector.engine --fp16
  polyop convert detector.onnx -o detector.engine --fp16 --int8 --calibration photos --letterbox model
  polyop convert srcnn3.onnx -o srcnn3.engine --set factor=1,1,3,3 --shape input=1x3x64x64:1x3x256x256:1x3x512x512
  polyop convert detector.onnx -o detector.xml --runtime openvino
  polyop convert detector.onnx -o half.onnx --half --images photos"""

LINK = "libtensorrt_rtx.so"
_MAX_WORKSPACE = 1 << 20
_MAX_EXTENT = 2**31 - 1
_Given = tuple[dict[str, list[list[int]]], dict[str, Any]]
"""The shapes of --shape and the constants of --set."""
_FOR_TENSORRT = ("shape", "set", "int8", "workspace", "timing_cache", "layers")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", help="an ONNX file")
    add("-o", "--output", required=True, metavar="FILE", help="model.engine, model.xml, or model.onnx with --half")
    add(
        "--runtime",
        type=choice("tensorrt", "openvino"),
        default="tensorrt",
        metavar="RUNTIME",
        help="tensorrt (default) or openvino: a .xml and a .bin file",
    )
    add(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=MIN:OPT:MAX",
        help="the least, the usual and the largest shape of an input, as in x=1x3x64x64:1x3x512x512:4x3x1024x1024, or one "
        "shape for all three (default: the model's, if all but the first extent are fixed; that is 1 to 8 then)",
    )
    add(
        "--set",
        action="append",
        default=[],
        metavar="NAME=V,V,…",
        help="an input that becomes a constant with these values, such as scales",
    )
    add(
        "--fp16",
        action="store_true",
        help="compute in half precision (OpenVINO: store weights in it); inputs and outputs keep their types",
    )
    add(
        "--half",
        action="store_true",
        help="compute in half precision, but for the nodes that overflow or lose results on --images or --calibration; the "
        "file is compared with the model before it is written",
    )
    add("--images", nargs="+", default=[], metavar="PHOTO", help="with --half: photos, folders or patterns")
    add("--truth", metavar="FILE", help="with --half --images: COCO's annotations, by which mAP is measured")
    add(
        "--loss",
        type=real(0),
        metavar="X",
        help="with --half: the most that may be lost: 0.005 of the mAP, or 0.01 of an output's scale if the model is no "
        "detector",
    )
    add("--int8", action="store_true", help="compute convolutions and matrix products in int8, also with --fp16")
    add(
        "--calibration",
        metavar="FOLDER",
        help="samples for --int8 or --half: images, .npy or .npz files, each the inputs of one run",
    )
    add_image_options(parser)
    add_memory_option(parser)
    add(
        "--builder-optimization-level",
        type=integer(0, 5),
        metavar="N",
        help="0 to 5: how long TensorRT searches for fast kernels (default: TensorRT's)",
    )
    add(
        "--workspace",
        type=integer(1, _MAX_WORKSPACE),
        default=0,
        metavar="MIB",
        help="MiB of GPU memory that layers may use (default: no limit)",
    )
    add_library_option(parser, "a further library of TensorRT plugins, or with --runtime openvino of operators")
    add("--timing-cache", metavar="FILE", help="a file of measurements, read and written")
    add("--layers", action="store_true", help="print the layers of the network that TensorRT built")
    add("-v", "--verbose", action="store_true", help="print all messages of TensorRT")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    shapes = _parse_shapes(options.shape)
    constants = _parse_constants(options.set)
    if options.runtime == "tensorrt" and options.output.lower().endswith(".xml"):
        raise usage(
            f"--output: expected an engine, got '{options.output}'", "for OpenVINO's files add --runtime openvino"
        )
    _check_half(options)
    if not options.half and options.int8 != bool(options.calibration):
        raise usage("--int8 and --calibration FOLDER: expected both, got one of them")
    if options.calibration and not Path(options.calibration).is_dir():
        raise usage(f"--calibration: expected a folder, got '{options.calibration}'")
    model = check_model(options.model)
    check_attributes(model)
    check_output(options.model, options.output)
    if options.runtime == "openvino":
        _check_openvino(options)
    elif not options.output.lower().endswith(".onnx"):
        check_inputs(model, [*shapes, *constants])
        _check_timing_cache(options)
        restart_with_parser_path()
    given = (shapes, constants)
    return _in_half(options, model, given) if options.half else _convert(options, model, given, {})


def _convert(options: argparse.Namespace, model: ModelProto, given: _Given, halved: dict[str, Any]) -> int:
    """Builds the engine or writes OpenVINO's files. halved: the report of --half, {} without it."""
    if options.runtime == "openvino":
        return _to_openvino(options, model, halved)
    report = _build(options, model, *given, halved)
    if options.json:
        terminal.print_json(report)
    else:
        _print(options, report)
    return ExitCode.OK


def _check_half(options: argparse.Namespace) -> None:
    if not options.half and (used := [n for n in ("images", "truth", "loss") if getattr(options, n) not in (None, [])]):
        raise usage(f"--{used[0]}: expected --half")
    if options.half and (options.fp16 or options.int8):
        raise usage(f"--half: expected no --{'fp16' if options.fp16 else 'int8'}, got both")
    if options.images and options.calibration:
        raise usage("--images and --calibration: expected one of them, got both")
    if options.truth and not options.images:
        raise usage("--truth: expected --images")
    if not options.half and options.output.lower().endswith(".onnx"):
        raise usage(f"--output: expected an engine or a .xml file, got '{options.output}'", "an ONNX file needs --half")


def _in_half(options: argparse.Namespace, model: ModelProto, given: _Given) -> int:
    """Writes a file of ONNX in half precision, or builds the engine or the files of OpenVINO from it."""
    from polyop._commands.convert_half import halved_file, print_report
    from polyop._onnx.atomic_file import write_atomically
    from polyop.tensorrt import _runtime

    if not model.graph.node or not model.graph.output:
        raise CommandError(ExitCode.BAD_FILE, f"{options.model}: expected a model with nodes and outputs")
    check_provided(model, options.model)
    is_onnx = options.output.lower().endswith(".onnx")
    if options.runtime == "tensorrt" and not is_onnx:
        _runtime()  # raises NoTensorRTError before the calibration, which takes long
    with halved_file(options) as (file, report):
        if not options.json:
            print_report(report)
        if not is_onnx:
            of_file = argparse.Namespace(**{**vars(options), "model": str(file)})
            return _convert(of_file, check_model(str(file)), given, {"half": report})
        write_atomically(Path(options.output), file.read_bytes())
        if options.json:
            terminal.print_json({"model": options.output, "half": report})
        else:
            size = terminal.bytes_text(file.stat().st_size)
            print(f"{terminal.green('wrote')} {options.output} ({size}): inputs and outputs keep their types")
        return ExitCode.OK


def _parse_shapes(texts: list[str]) -> dict[str, list[list[int]]]:
    """Parses "input=1x3x224x224:1x3x512x512:4x3x1024x1024", or one shape for all three."""
    shapes = {}
    for text in texts:
        name, value = split_named("--shape", text)
        parts = [parse_shape(part, f"--shape {text}") for part in (value.split(":") if value else [])]
        if len(parts) not in (1, 3):
            raise usage(f"--shape {text}: expected 1 or 3 shapes, got {len(parts)}", "separate three shapes by ':'")
        for extent in (extent for shape in parts for extent in shape):
            if extent > _MAX_EXTENT:
                raise usage(f"--shape {text}: expected extents of at most {_MAX_EXTENT}, got {extent}")
        shapes[name] = parts
    return shapes


def _parse_constants(texts: list[str]) -> dict[str, Any]:
    constants = {}
    for text in texts:
        name, value = split_named("--set", text)
        constants[name] = [parse_number(part, f"--set {text}") for part in (value.split(",") if value else [])]
    return constants


def _check_timing_cache(options: argparse.Namespace) -> None:
    """Raises CommandError if the file of measurements is the model or the engine, which it would overwrite."""
    if options.timing_cache is None:
        return
    cache = Path(options.timing_cache)
    if any(cache.resolve() == Path(other).resolve() for other in (options.model, options.output)):
        raise usage(f"--timing-cache {cache}: expected another file than the model and the engine")


# ---- TensorRT --------------------------------------------------------------------------------------------------------


def restart_with_parser_path() -> None:
    """Restarts this program with a link libtensorrt_rtx.so on the loader's path, if TensorRT-RTX needs it.

    TensorRT-RTX's ONNX parser opens the library by this name, which its wheel does not have. The link is in a new
    folder that only this user can write, because others could create a folder with a predictable name. The folder is
    removed at exit.
    """
    if restarted := os.environ.get("POLYOP_RESTARTED"):
        atexit.register(_remove_link, Path(restarted))
        return
    from polyop.tensorrt import EngineError, _runtime

    try:
        if "rtx" not in _runtime().__name__:
            return
    except EngineError:  # _build() raises it again
        return
    try:
        ctypes.CDLL(LINK)
        return
    except OSError:
        pass
    loaded = {Path(line.split()[-1]) for line in Path("/proc/self/maps").read_text().splitlines() if LINK in line}
    if not loaded:
        return
    folder = Path(tempfile.mkdtemp(prefix="polyop-"))
    (folder / LINK).symlink_to(loaded.pop())
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]))
    environment = {**os.environ, "LD_LIBRARY_PATH": path, "POLYOP_RESTARTED": str(folder)}
    os.execve(sys.executable, isolation.command("polyop", *sys.argv[1:]), environment)


def _remove_link(folder: Path) -> None:
    """Removes the link and its folder, but never a folder with other files."""
    with suppress(OSError):
        (folder / LINK).unlink()
        folder.rmdir()


def _build(
    options: argparse.Namespace, model: ModelProto, shapes: dict[str, list[list[int]]], constants: dict[str, Any],
    halved: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Writes the engine and its description. Returns a report."""
    from polyop.tensorrt import EngineError, NoTensorRTError, get_tensorrt_op_path, onnx2trt, save_trt_engine

    plugins = [str(Path(library).absolute()) for library in options.ops]
    with ExitStack() as stack:
        try:
            engine = onnx2trt(
                options.model,
                shapes,
                fp16_mode=options.fp16,
                max_workspace_size=options.workspace << 20,
                constants=constants,
                plugins=plugins,
                timing_cache=options.timing_cache,
                calibration=_samples(options, model) if options.int8 else None,
                builder_optimization_level=options.builder_optimization_level,
                progress=bars(stack),
                verbose=options.verbose,
            )
        except EngineError as error:
            if not isinstance(error, NoTensorRTError):
                # Not before, because TensorRT has plugins for further nodes.
                check_provided(model, options.model)
            raise
    save_trt_engine(engine, options.output)
    used = any(layer["type"].startswith("PLUGIN") for layer in engine.layers)
    needs = {
        "producer": f"polyop {__version__}",
        "model": Path(options.model).name,
        "runtime": engine.runtime,
        "plugin_libraries": [Path(p).name for p in [get_tensorrt_op_path(), *plugins] if p and used],
        "precision": _precision(options, halved),
        "inputs": {
            name: {
                "type": engine.types[name],
                "shape": _common(three),
                **dict(zip(("least", "usual", "largest"), three, strict=True)),
            }
            for name, three in engine.shapes.items()
        },
        "outputs": {name: {"type": engine.types[name], "shape": shape} for name, shape in engine.outputs.items()},
        "metadata": {entry.key: entry.value for entry in model.metadata_props},
    }
    Path(f"{options.output}.json").write_text(json.dumps(needs, indent=2) + "\n")
    return {"bytes": len(engine.data), "layers": engine.layers, "needs": needs, **halved}


def _precision(options: argparse.Namespace, halved: dict[str, Any]) -> str:
    if halved:
        return f"fp16, but for {len(halved['half']['kept'])} node(s) in fp32"
    return "+".join(p for p in ("fp16", "int8") if getattr(options, p)) or "as in the model"


def _samples(options: argparse.Namespace, model: ModelProto) -> Iterator[dict[str, np.ndarray]]:
    from polyop._commands.inputs import read_samples

    return read_samples(options, model, Path(options.calibration))


def _common(shapes: list[list[int]]) -> list[int]:
    """Returns the extents, with -1 where they differ."""
    return [low if low == high else -1 for low, _, high in zip(*shapes, strict=True)]


def _print(options: argparse.Namespace, report: dict[str, Any]) -> None:
    if options.layers:
        columns = ["type", "output", "precision"]
        rows = [[layer["name"], *(layer[column] for column in columns)] for layer in report["layers"]]
        print(terminal.table(["layer", *columns], rows), end="\n\n")
    needs = report["needs"]
    rows = [
        [name, *(str(shapes[which]) for which in ("least", "usual", "largest"))]
        for name, shapes in needs["inputs"].items()
    ]
    print(terminal.table(["input", "least", "usual", "largest"], rows), end="\n\n")
    size = terminal.bytes_text(report["bytes"])
    print(f"{terminal.green('wrote')} {options.output} ({size}) for {needs['runtime']}")
    libraries = ", ".join(needs["plugin_libraries"]) or "no plugin library"
    print(f"{terminal.green('wrote')} {options.output}.json: the engine needs {libraries}")


# ---- OpenVINO --------------------------------------------------------------------------------------------------------


def _check_openvino(options: argparse.Namespace) -> None:
    if Path(options.output).suffix.lower() != ".xml":
        raise usage(
            f"--output: expected a .xml file, got '{options.output}'",
            "OpenVINO's files: -o model.xml --runtime openvino",
        )
    if any(getattr(options, name) for name in _FOR_TENSORRT) or options.builder_optimization_level is not None:
        raise usage(
            "--shape, --set, --int8, --builder-optimization-level, --workspace, --timing-cache and --layers are options "
            "of TensorRT"
        )


def _to_openvino(options: argparse.Namespace, model: ModelProto, halved: dict[str, Any]) -> int:
    """Converts the model as it is. OpenVINO takes shapes and values when it compiles a model."""
    output = Path(options.output)
    import polyop.openvino

    core = polyop.openvino.core()
    import openvino

    from polyop._commands.run_openvino import METADATA
    from polyop.verifying.sides import read_openvino

    try:
        for library in options.ops:
            core.add_extension(str(Path(library).absolute()))
        with read_openvino(core, Path(options.model)) as read:
            read.set_rt_info(json.dumps({entry.key: entry.value for entry in model.metadata_props}), METADATA)
            openvino.save_model(read, output, compress_to_fp16=options.fp16)
    except RuntimeError as error:
        check_provided(model, options.model)  # afterwards, because plugins may provide any node
        raise CommandError(ExitCode.FAILED, f"{options.model}: {error}") from error
    weights, runtime = output.with_suffix(".bin"), f"OpenVINO {openvino.__version__.split('-')[0]}"
    if options.json:
        terminal.print_json({"model": str(output), "weights": str(weights), "runtime": runtime, **halved})
    else:
        print(f"{terminal.green('wrote')} {output} and {weights} for {runtime}; polyop.openvino.core() reads them")
    return ExitCode.OK
