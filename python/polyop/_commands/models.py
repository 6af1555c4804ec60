# SPDX-License-Identifier: Apache-2.0
"""Checks of the model, the output and the runtime of a command, before its work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from polyop._commands.errors import CommandError, ExitCode, suggestion, usage
from polyop._onnx.atomic_file import prepare_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from onnx import ModelProto, NodeProto, ValueInfoProto

OLDEST_ONNXRUNTIME = (1, 20)
"""As the extras `optimize` and `batch` require."""
_RUNTIME_DOMAIN = "com.microsoft"
_STANDARD_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training")


def check_file(path: str) -> None:
    """Raises CommandError if there is no such file."""
    if not Path(path).is_file():
        raise CommandError(
            ExitCode.BAD_FILE,
            f"'{path}' does not exist" if not Path(path).exists() else f"'{path}': expected a file, got a directory",
        )


def check_output(model: str, output: str) -> None:
    """Creates the folder of an output file. Raises CommandError if the file is the model, or OSError if it cannot be
    written."""
    path = Path(output)
    if path.exists() and path.samefile(model):
        raise usage(f"--output {output}: expected another file than the model, which it would overwrite")
    prepare_folder(path)


def check_onnxruntime(oldest: tuple[int, int]) -> None:
    """Raises CommandError if ONNX Runtime is older, or ModuleNotFoundError if it is missing."""
    import onnxruntime

    release = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
    if release < oldest:
        raise CommandError(
            ExitCode.NO_RUNTIME,
            f"expected ONNX Runtime {oldest[0]}.{oldest[1]} or newer, got {onnxruntime.__version__}",
            "pip install --upgrade onnxruntime",
        )


def check_model(path: str) -> ModelProto:
    """Returns the model without its external data. Raises CommandError or FileError if the file or the data is missing,
    damaged or not ONNX."""
    from polyop._onnx.files import external_files, read_model

    check_file(path)
    model = read_model(Path(path))
    external_files(model, Path(path))
    return model


def check_nodes(path: str, libraries: Sequence[str] = ()) -> ModelProto:
    """Like check_model, check_provided and check_attributes. Further libraries may provide any operator."""
    model = check_model(path)
    if not libraries:
        check_provided(model, path)
    check_attributes(model)
    return model


def inputs_of(model: ModelProto) -> list[ValueInfoProto]:
    """Returns the inputs, without those that have initializers."""
    initialized = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initialized]


def check_inputs(model: ModelProto, names: Iterable[str]) -> None:
    """Raises CommandError if the model has no input of one of the names."""
    inputs = {value.name: value for value in inputs_of(model)}
    for name in names:
        if name not in inputs:
            known = ", ".join(f"{other}: {_type_text(value)}" for other, value in inputs.items()) or "none"
            raise usage(f"the model has no input '{name}'", f"{suggestion(name, inputs)}its inputs are {known}")


def extents(value: ValueInfoProto) -> tuple[int | str | None, ...]:
    """Returns the shape of an input, with the names of dynamic dimensions, or None for those without a name."""
    dims = value.type.tensor_type.shape.dim
    return tuple(d.dim_param or (d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None) for d in dims)


def _type_text(value: ValueInfoProto) -> str:
    from onnx import TensorProto

    shape = ", ".join("?" if extent is None else str(extent) for extent in extents(value))
    return f"{TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()}[{shape}]"


def without_provider(model: ModelProto) -> list[NodeProto]:
    """Returns the nodes of operators that nobody provides.

    Providers are polyop, packages, ONNX Runtime and the functions of the model.
    """
    from polyop._onnx.catalogue import is_node
    from polyop._onnx.graph import nodes_of

    functions = {(f.domain, f.name) for f in model.functions}
    return [
        node
        for node in nodes_of(model)
        if node.domain not in _STANDARD_DOMAINS
        and not node.domain.startswith(_RUNTIME_DOMAIN)
        and (node.domain, node.op_type) not in functions
        and not is_node(node.domain, node.op_type)
    ]


def check_provided(model: ModelProto, path: str) -> None:
    """Raises CommandError if the model has nodes of operators that nobody provides."""
    if missing := sorted({type_of(node) for node in without_provider(model)}):
        raise CommandError(
            ExitCode.NOT_PROVIDED,
            f"nobody provides {', '.join(missing)}",
            f"`polyop inspect {path}` has advice; --ops LIB adds a library of operators",
        )


def check_attributes(model: ModelProto) -> None:
    """Raises CommandError if a node of polyop or of a package has an attribute that its operator lacks, or a value that
    a runtime refuses, as the program does (cli/base/model_check.cc)."""
    from polyop._onnx.catalogue import WITHOUT_EFFECT, spellings
    from polyop._onnx.graph import nodes_of
    from polyop._onnx.node_groups import resolved

    for node in nodes_of(model):
        if (found := resolved(node)) is None or (operator := found.operator) is None:
            continue
        known = [name for attribute in operator["attributes"] for name in spellings(attribute, found.node)]
        unknown = next((a.name for a in node.attribute if a.name not in (*known, *WITHOUT_EFFECT)), None)
        refers = any(a.ref_attr_name for a in node.attribute)  # to values of a function's calls
        error = f"unknown attribute '{unknown}'" if unknown else "" if refers else found.error
        if not error:
            continue
        which = f" (node '{node.name}')" if node.name else ""
        package = "" if operator["package"] == "polyop" else f"{operator['package']}::"
        near = suggestion(unknown, known) if unknown else ""
        hint = f"{near}`polyop ops {package}{operator['name']}` lists the attributes"
        raise CommandError(ExitCode.BAD_FILE, f"{type_of(node)}{which}: {error}", hint)


def type_of(node: NodeProto) -> str:
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type
