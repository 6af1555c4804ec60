"""polyop.export: writes a torch model as a valid ONNX file whose outputs agree with PyTorch's."""

from __future__ import annotations

import inspect
import logging
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import torch
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from torch import Tensor

from polyop._aten.advice import advise, advise_on_capture
from polyop._onnx.atomic_file import prepare_folder
from polyop._onnx.files import external_files
from polyop._torch.export_record import Record, recording
from polyop._torch.node_domain import node_domain
from polyop.errors import PolyopError
from polyop.packages import register_all
from polyop.portable import convert_file

__all__ = ["ExportError", "Exported", "export"]

_EXPORTERS = ("dynamo", "torchscript")


class ExportError(PolyopError, RuntimeError):
    """No exporter could write the model, or the file's outputs differ from PyTorch's."""


@dataclass
class OutputReport:
    """How ONNX Runtime's result for one output compares with PyTorch's."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    largest_difference: float  # absolute; NaN equals NaN
    agrees: bool


@dataclass
class Exported:
    """Describes an exported file and how its outputs compare with PyTorch's."""

    path: Path
    exporter: str
    opsets: dict[str, int]
    nodes: Counter[str]  # "domain::Type" of custom nodes, "Type" of standard ones
    outputs: list[OutputReport]
    translated: Counter[str] = field(default_factory=Counter)  # calls of PyTorch's operators that polyop translated
    assumes_sizes: bool = False  # the file may be wrong if a size that depends on values of tensors is 0 or 1

    def summary(self) -> str:
        custom = ", ".join(f"{name} x{n}" for name, n in sorted(self.nodes.items()) if "::" in name) or "none"
        count = sum(self.nodes.values())
        nodes = "1 node" if count == 1 else f"{count} nodes"
        text = f"{self.path.name}: {nodes} by the {self.exporter} exporter; custom: {custom}"
        if self.translated:
            text += "; translated: " + ", ".join(f"{name} x{n}" for name, n in sorted(self.translated.items()))
        if self.assumes_sizes:
            text += "; assumed: sizes that depend on values of tensors are 2 or more"
        return text

    def table(self) -> Table:
        table = Table("output", "type", "shape", "largest difference", "agrees", box=box.SIMPLE)
        for o in self.outputs:
            shape = " x ".join(map(str, o.shape)) or "scalar"
            table.add_row(
                escape(o.name), o.dtype, shape, f"{o.largest_difference:.3g}", "yes" if o.agrees else "[red]no[/red]"
            )
        return table


@contextmanager
def _quietly() -> Iterator[None]:
    """Silences the exporters, which warn about future changes and missing libraries."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def export(
    model: torch.nn.Module,
    args: Tensor | Sequence[Tensor | None],
    path: str | Path,
    *,
    exporter: str = "auto",
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    domain: str = "mmcv",
    opset_version: int | None = None,
    portable: bool = False,
    rtol: float = 1e-3,
    atol: float = 1e-4,
    verbose: bool = True,
) -> Exported:
    """Writes `model(*args)` as ONNX, checks the file, runs it in ONNX Runtime, and compares with PyTorch.

    The file gets its name, and replaces an older one, after the comparison.

    Args:
        model: the module to export. It runs in evaluation mode. Its modules then return to the modes that they had.
        args: its inputs; None for an optional one that is omitted.
        path: the ONNX file to write.
        exporter: "dynamo", "torchscript", or "auto": the first of these that can write the model.
        input_names: the names of the tensors among `args`; those of forward()'s parameters by default.
        output_names: the names of the outputs; the exporter's by default.
        dynamic: the dynamic dimensions of the inputs, such as {"x": {0: "batch", 2: "height"}}.
        domain: the domain of custom nodes of operators with several names: "mmcv", "mmdeploy" or "custom".
        opset_version: the ONNX opset; the exporter's default if None.
        portable: adds functions of standard operators for polyop's nodes, so that the file runs without polyop. They
            are run and compared, too.
        rtol, atol: the tolerance: |result - expected| <= atol + rtol * |expected|.
        verbose: prints the report as a table.

    Creates the folder of the file. Raises OSError if the file cannot be written, before anything is exported, and
    ExportError if no exporter can write the model, the file is not valid ONNX, ONNX Runtime cannot run it, or an
    output differs from PyTorch's by more than the tolerance, in shape or in type.
    """
    if exporter not in ("auto", *_EXPORTERS):
        raise ValueError(f"exporter: expected 'auto', {' or '.join(map(repr, _EXPORTERS))}, got '{exporter}'")
    inputs = (args,) if isinstance(args, Tensor) else tuple(args)
    tensors = [t for t in inputs if t is not None]
    names = list(input_names) if input_names else _parameter_names(model, inputs)
    if len(names) != len(tensors):
        raise ValueError(f"input_names: expected {len(tensors)} names, got {len(names)}: {names}")
    if unknown := set(dynamic or ()) - set(names):
        raise ValueError(f"dynamic: expected names of inputs ({', '.join(names)}), got {', '.join(sorted(unknown))}")
    path = Path(path)
    prepare_folder(path)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        file = Path(folder, path.name)
        with _evaluating(model), torch.no_grad():
            expected = _flat(model(*inputs))
            used, record = _write(model, inputs, file, exporter, names, output_names, dynamic, domain, opset_version)
        if portable:
            _add_functions(file)
        feeds = dict(zip(names, tensors, strict=True))
        nodes, opsets, outputs = _checked(file, feeds, expected, rtol, atol, portable)
        report = Exported(path, used, opsets, nodes, outputs, record.translated, record.assumes_sizes)
        if verbose:
            console = Console()
            console.print(report.summary(), markup=False, highlight=False, soft_wrap=True)
            console.print(report.table())
        if wrong := [o for o in outputs if not o.agrees]:
            what = ", ".join(f"'{o.name}' by {o.largest_difference:.3g}" for o in wrong)
            raise ExportError(f"{path.name}: outputs differ from PyTorch's: {what}")
        _publish(file, path)
    return report


@contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Puts the model into evaluation mode, and each of its modules back into its own mode: some may be frozen."""
    modes = {module: module.training for module in model.modules()}
    with suppress(NotImplementedError):  # a program that torch.export captured, such as PT2E's, has one mode
        model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def _checked(
    file: Path, feeds: Mapping[str, Tensor], expected: list[Tensor], rtol: float, atol: float, portable: bool
) -> tuple[Counter[str], dict[str, int], list[OutputReport]]:
    """Returns the file's nodes, opsets, and outputs compared with PyTorch's. Raises ExportError."""
    proto = onnx.load(file, load_external_data=False)
    try:
        onnx.checker.check_model(str(file))
    except onnx.checker.ValidationError as error:
        raise ExportError(f"{file.name} is not valid ONNX: {error}") from error
    nodes = Counter(
        f"{n.domain}::{n.op_type}" if n.domain not in ("", "ai.onnx") else n.op_type for n in proto.graph.node
    )
    outputs = _compare(file, feeds, expected, rtol, atol)
    if portable:
        functions = _compare(file, feeds, expected, rtol, atol, functions_only=True)
        if different := [o.name for o in functions if not o.agrees]:
            raise ExportError(f"{file.name}: the functions' outputs differ from PyTorch's: {', '.join(different)}")
    return nodes, {o.domain: o.version for o in proto.opset_import}, outputs


def _publish(file: Path, path: Path) -> None:
    """Moves a file and its external data to their final folder, in place of an older file and its data.

    Raises ExportError if external data would overwrite a file that is not the older model's.
    """
    data = [other for other in file.parent.iterdir() if other != file]
    older: set[str] = set()
    with suppress(Exception):  # there is none, or it is damaged
        older.update(external_files(onnx.load(path, load_external_data=False), path.parent))
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


def _write(
    model: torch.nn.Module,
    inputs: tuple[Tensor | None, ...],
    path: Path,
    exporter: str,
    input_names: Sequence[str],
    output_names: Sequence[str] | None,
    dynamic: Mapping[str, Mapping[int, str]] | None,
    domain: str,
    opset_version: int | None,
) -> tuple[str, Record]:
    """Tries the exporters. Returns the name of the one that wrote the file, and what polyop did for it."""
    common: dict[str, Any] = {"input_names": input_names, "output_names": output_names, "opset_version": opset_version}
    failures = []
    advice = ""
    for candidate in _EXPORTERS if exporter == "auto" else (exporter,):
        try:
            with node_domain(domain), recording() as record, _quietly():
                if candidate == "dynamo":
                    left = iter(input_names)
                    shapes = (
                        tuple(dict(dynamic.get(next(left), {})) if t is not None else None for t in inputs)
                        if dynamic
                        else None
                    )
                    result = torch.onnx.export(
                        model, inputs, dynamo=True, dynamic_shapes=shapes, verbose=False, **common
                    )
                    assert result is not None  # without a path it returns the program
                    result.save(path)
                else:
                    torch.onnx.export(model, inputs, str(path), dynamo=False, dynamic_axes=dynamic, **common)
            return candidate, record if candidate == "dynamo" else Record()
        except Exception as error:  # exporters raise errors of any type
            failures.append((candidate, error))
            if candidate == "dynamo":
                lines = [line for name, stack in record.unknown.items() for line in advise(name, stack)]
                advice = "".join(f"\n  {line}" for line in lines or advise_on_capture(error))
    reasons = "\n".join(f"  {name}: {type(error).__name__}: {error}" for name, error in failures)
    raise ExportError(f"the model could not be exported:\n{reasons}{advice}") from failures[0][1]


def _as_real(tensor: Tensor) -> Tensor:
    """Returns a tensor as files have it: complex numbers as pairs."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _flat(result: Any) -> list[Tensor]:
    """Returns the tensors of a result, in the order of the exporters' outputs."""
    if result is None:
        return []
    if isinstance(result, Tensor):
        return [_as_real(result)]
    if isinstance(result, int | float):  # such as the size of a dimension
        return [torch.tensor(result)]
    if isinstance(result, Mapping):
        result = list(result.values())
    if not isinstance(result, Sequence) or isinstance(result, str | bytes):
        raise ExportError(f"outputs: expected tensors and numbers, got a value of type {type(result).__name__}")
    return [tensor for part in result for tensor in _flat(part)]


def _add_functions(path: Path) -> None:
    refused = {r["name"]: r["why"] for r in convert_file(path, path)["nodes"] if not r["given"]}
    if refused:
        reasons = "; ".join(f"{name}: {why}" for name, why in refused.items())
        raise ExportError(f"{path.name}: some nodes have no portable form: {reasons}")


def _compare(
    path: Path,
    inputs: Mapping[str, Tensor],
    expected: list[Tensor],
    rtol: float,
    atol: float,
    functions_only: bool = False,
) -> list[OutputReport]:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    if not functions_only:
        register_all(options)
    try:
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        # Exporters omit inputs that the outputs do not depend on.
        results = session.run(
            None, {i.name: _as_real(inputs[i.name].detach().cpu()).numpy() for i in session.get_inputs()}
        )
    except Exception as error:  # ONNX Runtime's own types are not public
        raise ExportError(f"ONNX Runtime cannot run {path.name}: {error}") from error
    if len(results) != len(expected):
        raise ExportError(f"{path.name}: expected {len(expected)} outputs, got {len(results)}")
    reports = []
    for info, got, tensor in zip(session.get_outputs(), results, expected, strict=True):
        reference = tensor.detach().cpu().numpy()
        same_kind = got.shape == reference.shape and got.dtype == reference.dtype
        difference = _largest_difference(got, reference) if got.shape == reference.shape else float("inf")
        exact = reference.dtype.kind in "iub"  # `allclose` converts integers to floats
        agrees = same_kind and bool(
            np.array_equal(got, reference) if exact else np.allclose(got, reference, rtol, atol, equal_nan=True)
        )
        reports.append(OutputReport(info.name, str(got.dtype), got.shape, difference, agrees))
    return reports


def _largest_difference(a: np.ndarray, b: np.ndarray) -> float:
    if a.size == 0:
        return 0.0
    same = (a == b) | ((a != a) & (b != b))
    difference = np.where(same, 0.0, np.abs(a.astype(np.float64) - b.astype(np.float64)))
    return float(np.nan_to_num(difference, nan=np.inf).max())
