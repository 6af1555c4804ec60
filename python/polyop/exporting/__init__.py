# SPDX-License-Identifier: Apache-2.0
"""polyop.export: writes a torch model as a valid ONNX file whose outputs agree with PyTorch's, also at other sizes than
the example's."""

from __future__ import annotations

import inspect
import os
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import onnx
import onnx_ir
import torch
from rich.console import Console
from torch import Tensor

from polyop._aten.patches import missing
from polyop._onnx.atomic_file import prepare_folder
from polyop._onnx.files import external_files
from polyop._onnx.roles import role_of
from polyop.exporting.assumptions import Assumptions
from polyop.exporting.comparing import Comparer, File, Tolerance, as_real, flat
from polyop.exporting.declared import Declared, clear
from polyop.exporting.dimensions import (
    Comparison,
    Dimension,
    Sizes,
    comparison,
    coupled,
    given_comparisons,
    read_dimensions,
    smaller_sizes,
    standard_comparisons,
)
from polyop.exporting.inputs import other_inputs
from polyop.exporting.report import Exported, ExportError, OtherBranchError, OutputReport
from polyop.exporting.state import State, forget_captured_tensors, require_no_state
from polyop.exporting.writing import EXPORTERS, Request, Written, choice_after, write
from polyop.portable import convert_file

__all__ = ["ExportError", "Exported", "OutputReport", "export"]

_HINT = "sizes={…} chooses other sizes, and check=False compares at the example's alone"


def export(
    model: torch.nn.Module,
    args: Tensor | Sequence[Tensor | None],
    path: str | Path,
    *,
    exporter: str = "auto",
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic: Mapping[str, Mapping[int, Any]] | None = None,
    domain: str = "mmcv",
    opset_version: int | None = None,
    portable: bool = False,
    check: bool = True,
    sizes: Mapping[str, Sequence[int]] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    verbose: bool = True,
) -> Exported:
    """Writes `model(*args)` as ONNX, checks the file, runs it in ONNX Runtime, and compares with PyTorch: at the sizes
    of the example, and at others.

    The file gets its name, and replaces an older one, after the comparison.

    Args:
        model: the module to export. It runs in evaluation mode. Its modules then return to the modes that they had,
            and its buffers to the values that they have after one call.
        args: its inputs; None for an optional one that is omitted.
        path: the ONNX file to write.
        exporter: "dynamo", "torchscript", or "auto": the first of these that can write the model. TorchScript's writes
            a Python branch or loop as the example has it, so "auto" takes it only where that is no difference.
        input_names: the names of the tensors among `args`; those of forward()'s parameters by default.
        output_names: the names of the outputs; the exporter's by default.
        dynamic: the dynamic dimensions of the inputs: names, such as {"x": {0: "batch", 2: "height"}}, or
            torch.export.Dim(name, min=…, max=…). Dimensions of one name have one size.
        domain: the domain of custom nodes of operators with several names: "mmcv", "mmdeploy" or "custom".
        opset_version: the ONNX opset; the exporter's default if None.
        portable: adds functions of standard operators for polyop's nodes, so that the file runs without polyop. They
            are run and compared, too.
        check: compares with other values and at other sizes of the dynamic dimensions, too: larger, smaller, a single
            row, each dimension alone, the bounds of a Dim, and sizes that break a condition which PyTorch assumed.
            Sizes that PyTorch refuses are not compared.
        sizes: the sizes to compare at instead, by the name of the dimension, such as {"height": [64, 96]}.
        rtol, atol: an element may differ by atol + rtol times its scale, the smallest of the largest magnitudes of the
            slices that contain it; and by as much as PyTorch's own results do for inputs that differ by rounding. By
            default, 1e-3 (float16: 1e-2), and 1e-6 of the output's largest magnitude. Integers must be equal.
        verbose: prints the report as a table.

    A Python branch on a size has the example's path, or that of the first of the other sizes if only the latter's file
    is right at all.

    Creates the folder of the file. Raises OSError if the file cannot be written, before anything is exported, and
    ExportError if no exporter can write the model, the file is not valid ONNX, ONNX Runtime cannot run it, or an
    output differs from PyTorch's by more than the tolerance, in shape or in type, at any of the sizes.
    """
    if exporter not in ("auto", *EXPORTERS):
        raise ValueError(f"exporter: expected 'auto', {' or '.join(map(repr, EXPORTERS))}, got '{exporter}'")
    inputs = (args,) if isinstance(args, Tensor) else tuple(args)
    if wrong := [i for i, value in enumerate(inputs) if not isinstance(value, Tensor | None)]:
        raise TypeError(
            f"args[{wrong[0]}]: expected a tensor or None, got {type(inputs[wrong[0]]).__name__}: export a module whose"
            " forward() takes tensors, and calls the model with lists and numbers"
        )
    tensors = [t for t in inputs if t is not None]
    names = list(input_names) if input_names else _parameter_names(model, inputs)
    if len(names) != len(tensors):
        raise ValueError(f"input_names: expected {len(tensors)} names, got {len(names)}: {names}")
    feeds = dict(zip(names, tensors, strict=True))
    dimensions = read_dimensions(dynamic, feeds)
    chosen = given_comparisons(dimensions, sizes) if sizes else None
    path = Path(path)
    prepare_folder(path)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        file = Path(folder, path.name)
        with _evaluating(model), torch.no_grad():
            before = State(model)

            def run(other: Mapping[str, Tensor]) -> list[Tensor]:
                """Models may change their inputs and buffers, and return buffers: results are copies."""
                before.restore_values()
                return run_again(other)

            def run_again(other: Mapping[str, Tensor]) -> list[Tensor]:
                given = iter(other.values())
                result = flat(model(*(None if t is None else next(given).clone() for t in inputs)))
                return [tensor.clone() for tensor in result]

            expected = run(feeds)
            after, others = State(model), other_inputs(feeds, {}, {}, {}, 17)

            def attempt(tensors: Mapping[str, Tensor], sizes: Sizes) -> Exported:
                """Writes and compares the program that PyTorch captures for these inputs, of these sizes."""
                before.restore()
                _run_smaller(run, feeds, dimensions)
                before.restore_values()
                given = iter(tensors.values())
                copies = tuple(None if t is None else next(given).clone() for t in inputs)  # tracing may change them
                request = Request(model, copies, names, output_names, dynamic, domain, opset_version)
                written = write(request, file, exporter, may_fall_back=check)
                forget_captured_tensors()
                if portable:
                    _add_functions(file)
                assumptions = Assumptions(written.record.guards, dimensions, _guard_names(request), sizes)
                comparer = Comparer(run, feeds, dimensions, assumptions, _roles(file), Tolerance(rtol, atol), _HINT)
                return _compared(file, path, written, expected, comparer, portable, check, chosen)

            try:
                require_no_state(model, before, lambda: run_again(feeds), lambda: run_again(others), expected)
                report = _with_right_branches(attempt, feeds, {d.name: d.example for d in dimensions.values()})
            finally:
                after.restore()
        if verbose:
            console = Console()
            console.print(report.summary(), markup=False, highlight=False, soft_wrap=True)
            console.print(report.table())
            if comparisons := report.comparisons():
                console.print(comparisons, markup=False, highlight=False, soft_wrap=True)
        _publish(file, path)
    return report


def _with_right_branches(
    attempt: Callable[[Mapping[str, Tensor], Sizes], Exported], feeds: Mapping[str, Tensor], sizes: Sizes
) -> Exported:
    """Attempts the program of the example and, if that has a branch which is wrong at other sizes, the program of
    those: the branch that pads by the rest of a division pads by 0, too, where there is no rest."""
    try:
        return attempt(feeds, sizes)
    except OtherBranchError as error:
        try:
            report = attempt(error.inputs, {**sizes, **error.sizes})
        except ExportError:
            raise error from None
        report.branches_of = error.sizes
        return report


def _compared(
    file: Path, path: Path, written: Written, expected: list[Tensor], comparer: Comparer, portable: bool, check: bool,
    chosen: Sequence[Comparison] | None,
) -> Exported:  # fmt: skip
    """Checks the file and compares it with PyTorch. Raises ExportError."""
    try:
        report, files = _checked(file, path, written, expected, comparer, portable)
        if check:
            _require_dynamic(files[0], comparer.dimensions)
            _compare_at_all(comparer, files, chosen)
            lines = written.record.texts
            texts = [f"what depends on a size as a text or key, at {line}" for line in lines]
            report.compared = comparer.compared
            report.not_compared = [*comparer.not_compared, *comparer.unchanged, *texts]
        return report
    except OtherBranchError:
        raise
    except ExportError as error:
        if written.refused:
            raise choice_after(written.refused, error) from error
        if lacking := missing():
            raise ExportError("\n  ".join([str(error), *lacking])) from error
        raise


def _compare_at_all(comparer: Comparer, files: Sequence[File], chosen: Sequence[Comparison] | None) -> None:
    """Compares with other data, at the chosen sizes, and otherwise at standard ones and those that break guards."""
    dimensions, assumptions = comparer.dimensions, comparer.assumptions
    example = {d.name: d.example for d in dimensions.values()}
    runs = standard_comparisons(dimensions, assumptions.equal()) if chosen is None else chosen
    for each in [comparison([example]), *runs]:
        comparer.compare_at(files, each if chosen else assumptions.with_fulfilled(each, dimensions))
    if chosen is None:
        comparer.note_unknown()
        compared = [example, *({**example, **sizes} for sizes in comparer.compared)]
        for each in assumptions.unequal(dimensions, compared):
            comparer.compare_at(files, each)
        for each in assumptions.not_tested(dimensions, compared):
            comparer.compare_at(files, each)
    comparer.require_all_dimensions()
    comparer.require_no_numbers(may_be=chosen is not None)


def _require_dynamic(file: File, dimensions: Mapping[str, Dimension]) -> None:
    for dimension in dimensions.values():
        for name, axis in dimension.axes:
            size = file.inputs.get(name, [None] * (axis + 1))[axis]
            if isinstance(size, int) and not dimension.optional:
                raise ExportError(f"{file.name}: '{name}'[{axis}]: expected a dynamic dimension, got {size}")


@contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Puts the model into evaluation mode, and each of its modules back into its own mode: some may be frozen.

    Exports of other threads wait: PyTorch's exporters cannot run at the same time in one process.
    """
    with _one_at_a_time:
        modes = {module: module.training for module in model.modules()}
        with suppress(NotImplementedError):  # a program that torch.export captured, such as PT2E's, has one mode
            model.eval()
        try:
            yield
        finally:
            for module, training in modes.items():
                module.training = training


_one_at_a_time = threading.RLock()


def _run_smaller(
    run: Callable[[Mapping[str, Tensor]], Any], feeds: Mapping[str, Tensor], dimensions: Mapping[str, Dimension]
) -> None:
    """Runs the model at smaller sizes. If it keeps what it computed for the sizes of its last call, such as positions,
    the example's would be constants of the file, and its sizes those of the file."""
    for sizes in smaller_sizes(dimensions):
        with suppress(Exception):  # the model may not accept these sizes
            run(other_inputs(feeds, dimensions, coupled(sizes, dimensions), {}, 17))
            return


def _checked(
    file: Path, path: Path, written: Written, expected: list[Tensor], comparer: Comparer, portable: bool
) -> tuple[Exported, list[File]]:
    """Checks and runs the file, and compares its outputs for the example. Raises ExportError."""
    proto = onnx.load(file, load_external_data=False)
    try:
        onnx.checker.check_model(str(file))
    except onnx.checker.ValidationError as error:
        raise ExportError(f"{file.name} is not valid ONNX: {error}") from error
    nodes = Counter(
        f"{n.domain}::{n.op_type}" if n.domain not in ("", "ai.onnx") else n.op_type for n in proto.graph.node
    )
    declared = Declared.by(proto.graph)
    sizes = {name: as_real(tensor).shape for name, tensor in comparer.tensors.items()}
    if wrong := declared.wrong_expressions(sizes, [tensor.shape for tensor in expected]):
        clear(proto.graph, wrong)
        onnx.save(proto, file)  # with the same external data
        declared = Declared.by(proto.graph)
    files = [File(file, declared)]
    outputs = comparer.compare_example(files[0], expected, "outputs")
    if portable:
        files.append(File(file, declared, functions_only=True))
        comparer.compare_example(files[1], expected, "the functions' outputs")
    opsets = {o.domain: o.version for o in proto.opset_import}
    record = written.record
    report = Exported(
        path, written.exporter, opsets, nodes, outputs, record.translated, record.assumes_sizes, written.warnings,
        written.refused,
    )  # fmt: skip
    return report, files


def _publish(file: Path, path: Path) -> None:
    """Moves a file and its external data to their final folder, in place of an older file and its data.

    Raises ExportError if external data would overwrite a file that is not the older model's.
    """
    data = [other for other in file.parent.iterdir() if other != file]
    older: set[str] = set()
    with suppress(Exception):  # there is none, or it is damaged
        older.update(external_files(onnx.load(path, load_external_data=False), path))
    for other in data:
        to = path.with_name(other.name)
        if to.exists() and other.name not in older and not other.name.startswith(path.name):
            raise ExportError(f"{to} already exists: the model's external data would overwrite it")
    for other in [*data, file]:
        os.replace(other, path.with_name(other.name))


def _parameter_names(model: torch.nn.Module, inputs: Sequence[Tensor | None]) -> list[str]:
    names = list(inspect.signature(model.forward).parameters)
    named = len(names) >= len(inputs) and not {"args", "kwargs"} & set(names)
    return [names[i] if named else f"input_{i}" for i, tensor in enumerate(inputs) if tensor is not None]


def _guard_names(request: Request) -> dict[str, str]:
    """Returns the input of each parameter, as guards write it, such as x or args[0]."""
    found: dict[str, str] = {}
    left = iter(request.input_names)
    of_forward = inspect.signature(request.model.forward).parameters.values()
    parameters = [p for p in of_forward if p.kind != p.KEYWORD_ONLY]
    for i, tensor in enumerate(request.inputs):
        at = min(i, len(parameters) - 1)
        name, several = parameters[at].name, parameters[at].kind == inspect.Parameter.VAR_POSITIONAL
        if tensor is not None:
            found[f"{name}[{i - at}]" if several else name] = next(left)
    return found


def _roles(file: Path) -> dict[str, str]:
    """Returns the roles of the file's inputs, such as boxes (core/input_role.h)."""
    return {value.name or "": role_of(value) for value in onnx_ir.load(file).graph.inputs}


def _add_functions(path: Path) -> None:
    refused = {r["name"]: r["why"] for r in convert_file(path, path)["nodes"] if not r["given"]}
    if refused:
        reasons = "; ".join(f"{name}: {why}" for name, why in refused.items())
        raise ExportError(f"{path.name}: some nodes have no portable form: {reasons}")
