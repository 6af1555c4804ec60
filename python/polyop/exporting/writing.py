# SPDX-License-Identifier: Apache-2.0
"""Writes a model with PyTorch's exporters."""

from __future__ import annotations

import inspect
import io
import logging
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from polyop._aten.advice import advise, advise_on_capture, advise_on_sizes, depends_on_values, needs_numbers
from polyop._aten.guards import is_pytorchs, line_of_program
from polyop._aten.patches import missing
from polyop._torch.export_record import Record, recording
from polyop._torch.node_domain import node_domain
from polyop._torch.translations import translations
from polyop.exporting.report import ExportError
from polyop.exporting.state import State

EXPORTERS = ("dynamo", "torchscript")
_MAX_TEXT = 500
_CHOICE = (
    'exporter="torchscript" writes the file all the same: it is right only for inputs that take the path of the example'
)
_EXPORTER_KEY, _FIXED_KEY = "polyop.exporter", "polyop.as_the_example_has_it"


@dataclass
class Request:
    """What to export, and how."""

    model: torch.nn.Module
    inputs: tuple[Tensor | None, ...]
    input_names: Sequence[str]
    output_names: Sequence[str] | None
    dynamic: Mapping[str, Mapping[int, Any]] | None
    domain: str
    opset_version: int | None


@dataclass
class Written:
    """How a file was written.

    warnings: what the TorchScript exporter wrote as the example has it.
    refused: why the dynamo exporter could not write the model, if it was tried before.
    """

    exporter: str
    record: Record = field(default_factory=Record)
    warnings: list[str] = field(default_factory=list)
    refused: str = ""


def write(request: Request, path: Path, exporter: str, may_fall_back: bool = True) -> Written:
    """Writes a file with an exporter, or with the first that can write the model if it is "auto".

    may_fall_back: "auto" may use the TorchScript exporter, of whose file the caller then shows that it is right.

    Raises ExportError if none can, and where "auto" would write a file by the TorchScript exporter that has the
    example's path of a program.
    """
    if exporter == "torchscript":
        written = _by_torchscript_or_raise(request, path, [])
        _note_choice(path, written.warnings)
        return written
    with node_domain(request.domain), recording() as record, _quietly():
        try:
            _by_dynamo(request, path)
            return Written("dynamo", record)
        except Exception as error:  # exporters raise errors of any type
            failure = error
            lines = [line for name, stack in record.unknown.items() for line in advise(name, stack)]
            advice = lines or list(advise_on_capture(error)) or list(advise_on_sizes(record.guards))
    reasons = [f"dynamo: {_text(failure)}", *advice, *missing()]
    if exporter == "dynamo":
        raise _failed(reasons) from failure
    if not may_fall_back:
        raise _failed(
            [*reasons, f"check=False leaves out what shows that another file is right; {_CHOICE}"]
        ) from failure
    try:
        written = _by_torchscript_or_raise(request, path, reasons)
    except ExportError as error:
        raise error from failure
    if written.warnings:
        fixed = [f"the TorchScript exporter would write as the example has it: {w}" for w in written.warnings]
        raise _failed([*reasons, *fixed, _CHOICE]) from failure
    # The tracer warns of some of the Python numbers that it makes constants, not of all, and of no keys.
    if depends_on_values(failure) or needs_numbers(failure, record.guards):
        raise _failed([*reasons, _CHOICE]) from failure
    written.record.guards = record.guards  # the path of the example has these conditions in both exporters
    written.refused = "\n".join(advice) or _text(failure)
    return written


def choice_after(refused: str, error: ExportError) -> ExportError:
    """Returns the error for a file of "auto" by the TorchScript exporter that differs from PyTorch."""
    return _failed([f"dynamo: {refused}", f"torchscript: {error}", _CHOICE])


def _failed(reasons: Sequence[str]) -> ExportError:
    lines = "\n".join(reasons).splitlines()
    return ExportError("\n  ".join(["the model could not be exported:", *lines]))


def _text(error: BaseException) -> str:
    """Returns the first lines of the error that caused this one, which says how PyTorch's exporter was called."""
    while (cause := error.__cause__) is not None:
        error = cause
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])[:_MAX_TEXT]}"


def _by_dynamo(request: Request, path: Path) -> None:
    with translations():
        result = torch.onnx.export(
            request.model, request.inputs, dynamo=True, dynamic_shapes=_shapes(request), verbose=False,
            input_names=request.input_names, output_names=request.output_names, opset_version=request.opset_version,
        )  # fmt: skip
    assert result is not None  # without a path it returns the program
    if added := [str(v.name) for v in result.model.graph.inputs if v.name not in request.input_names]:
        raise ValueError(f"inputs: expected {', '.join(request.input_names)}, got {', '.join(added)}, too")
    _require_opset(result.model, request.opset_version)
    _separate_names(result.model.graph)
    result.save(path)


def _shapes(request: Request) -> tuple[Any, ...] | None:
    """Returns the dynamic dimensions as the dynamo exporter expects them: those of *args are one tuple."""
    if not request.dynamic:
        return None
    left = iter(request.input_names)
    axes = (request.dynamic.get(next(left), {}) if t is not None else None for t in request.inputs)
    shapes = tuple(dict(of) if of is not None else None for of in axes)
    kinds = [parameter.kind for parameter in inspect.signature(request.model.forward).parameters.values()]
    several = inspect.Parameter.VAR_POSITIONAL
    at = kinds.index(several) if several in kinds else len(shapes)
    return (*shapes[:at], shapes[at:]) if at < len(shapes) else shapes


def _require_opset(model: Any, requested: int | None) -> None:
    """Raises ValueError if the file has an operator that the requested opset lacks, or another opset: PyTorch's
    exporter leaves what it cannot convert as it is."""
    if requested is None:
        return
    used = {node.op_type for node in model.graph.all_nodes() if node.domain in ("", "ai.onnx")}
    oldest: dict[str, int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.name in used:
            oldest[schema.name] = min(schema.since_version, oldest.get(schema.name, schema.since_version))
    name = max(oldest, key=lambda op_type: oldest[op_type], default="")
    if name and oldest[name] > requested:
        raise ValueError(f"opset_version: expected at least {oldest[name]}, which {name} needs, got {requested}")
    if (written := model.opset_imports.get("", requested)) != requested:
        raise ValueError(f"opset_version: expected {written}, which the exporter cannot convert, got {requested}")


def _separate_names(graph: Any) -> None:
    """Gives outputs that the exporter named after an input, because the program returns it unchanged, other names."""
    taken = {value.name for value in (*graph.inputs, *graph.initializers.values())}
    taken |= {value.name for node in graph for value in node.outputs if not value.is_graph_output()}
    for value in graph.outputs:
        name, number = value.name, 0
        while value.name in taken:
            number += 1
            value.name = f"{name}_out" if number == 1 else f"{name}_out_{number}"
        taken.add(value.name)


def _by_torchscript_or_raise(request: Request, path: Path, reasons: Sequence[str]) -> Written:
    if lines := _errors_that_are_caught(request):
        raise _failed([*reasons, *(f"torchscript: the program catches an error of PyTorch, {line}" for line in lines)])
    try:
        with node_domain(request.domain), _quietly() as found, _Conditions(found) as conditions:
            torch.onnx.export(
                request.model, request.inputs, str(path), dynamo=False, dynamic_axes=_axes(request.dynamic),
                input_names=request.input_names, output_names=request.output_names,
                opset_version=request.opset_version,
            )  # fmt: skip
    except Exception as error:  # exporters raise errors of any type
        raise _failed([*reasons, f"torchscript: {_text(error)}"]) from error
    _clear_shared_symbols(path)
    fixed = [w for w in found if issubclass(w.category, torch.jit.TracerWarning)]
    lines = [*(_described(w) for w in fixed), *conditions.lines]
    return Written("torchscript", warnings=list(dict.fromkeys(lines)))


class _Errors(TorchFunctionMode):
    """Notes the errors that functions of PyTorch raise."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, None] = {}

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            return function(*args, **(kwargs or {}))
        except Exception as error:
            self.lines[f"{_text(error)}, at {line_of_program()}"] = None
            raise


def _errors_that_are_caught(request: Request) -> list[str]:
    """Returns the errors of PyTorch that the program catches, and where: TorchScript's tracer is not in order after
    one, and what it does next is fatal."""
    copies = [None if tensor is None else tensor.clone() for tensor in request.inputs]
    before = State(request.model)
    try:
        with _Errors() as errors:
            request.model(*copies)
        return list(errors.lines)
    except Exception:  # the exporter raises it again
        return []
    finally:
        before.restore()


def _clear_shared_symbols(path: Path) -> None:
    """Declares nothing of those sizes of outputs that have one symbol of no input: the TorchScript exporter gives one
    to different sizes, such as TopK8_dim_1."""
    model = onnx.load(path, load_external_data=False)
    known = {d.dim_param for value in model.graph.input for d in value.type.tensor_type.shape.dim}
    sizes = [d for value in model.graph.output for d in value.type.tensor_type.shape.dim]
    uses = Counter(d.dim_param for d in sizes if d.dim_param and d.dim_param not in known)
    if shared := [d for d in sizes if uses[d.dim_param] > 1]:
        for size in shared:
            size.Clear()
        onnx.save(model, path)


_ASKED = frozenset(
    getattr(owner, name) for owner in (torch, Tensor) for name in ("allclose", "equal", "is_nonzero")
)  # fmt: skip


class _Conditions(TorchFunctionMode):
    """Notes in `lines` where a program asks for the Python value of a condition of which PyTorch's tracer does not
    warn. Gives those of which it warns the lines of the program: they are called from here."""

    def __init__(self, found: Sequence[warnings.WarningMessage]) -> None:
        super().__init__()
        self._found = found
        self.lines: list[str] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        before = len(self._found)
        result = func(*args, **(kwargs or {}))
        asked, warned = func in _ASKED, [w for w in self._found[before:] if is_pytorchs(w.filename)]
        if asked or warned:
            stack = traceback.walk_stack(sys._getframe(1))
            called = ((frame.f_code.co_filename, line) for frame, line in stack)
            file, line = next((at for at in called if not is_pytorchs(at[0])), ("", 0))
            for warning in warned:
                warning.filename, warning.lineno = file or warning.filename, line or warning.lineno
            if asked:
                self.lines.append(f"{file}:{line}: torch.{func.__name__} gives the example's value")
        return result


def _axes(dynamic: Mapping[str, Mapping[int, Any]] | None) -> dict[str, dict[int, str]] | None:
    """Returns the dynamic dimensions as the TorchScript exporter expects them: with names alone."""
    if dynamic is None:
        return None
    named: dict[str, dict[int, str]] = {}
    for tensor, axes in dynamic.items():
        for axis, stated in axes.items():
            if stated is not None and not isinstance(stated, int):
                name = stated if isinstance(stated, str) else getattr(stated, "__name__", f"{tensor}_{axis}")
                named.setdefault(tensor, {})[axis] = name
    return named


def _described(warning: warnings.WarningMessage) -> str:
    return f"{warning.filename}:{warning.lineno}: {str(warning.message).split('. ')[0]}"


def _note_choice(path: Path, fixed: Sequence[str]) -> None:
    """Records in the file that its user chose the exporter that writes the example's path of a program."""
    model = onnx.load(path, load_external_data=False)
    onnx.helper.set_model_props(model, {_EXPORTER_KEY: "torchscript", _FIXED_KEY: "\n".join(fixed)})
    onnx.save(model, path)


@contextmanager
def _without_graphs() -> Iterator[None]:
    """PyTorch's own switch of this log has no effect."""
    log = torch._C._jit_onnx_log
    torch._C._jit_onnx_log = lambda *_: None
    try:
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        torch._C._jit_onnx_log = log


@contextmanager
def _quietly() -> Iterator[list[warnings.WarningMessage]]:
    """Silences the exporters, which warn about future changes and missing libraries, and print graphs with what the
    errors say that they raise. Yields the warnings."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnx_ir", "torch.export", "torch.fx")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(record=True) as found, _without_graphs():
            warnings.simplefilter("always")
            yield found
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
