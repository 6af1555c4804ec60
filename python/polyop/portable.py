"""Portable files: adds a model-local function of ONNX's own operators for every node of polyop's.

Such a file runs in any ONNX Runtime. It runs faster where polyop's library is registered: kernels take precedence over
functions. docs/portable-files.md has the details.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import helper

from polyop import formulas
from polyop._onnx.atomic_file import remove_stale, write_atomically
from polyop._onnx.catalogue import is_node
from polyop._onnx.files import copy_external_files, read_model
from polyop._onnx.function_bodies import Body, name_nodes
from polyop._onnx.graph import nodes_of, opset_of
from polyop._onnx.node_groups import interface, ranks, resolve_shared_node, variants
from polyop.errors import one_line
from polyop.formulas import Call, NoBodyError

__all__ = ["Record", "add_functions", "inline"]

MIN_OPSET = 16
"""The opset of the functions' bodies, which need GridSample, RoiAlign with half pixels and CastLike."""
MIN_IR_VERSION = 8
"""The first version with functions."""


@dataclass(frozen=True)
class Record:
    """The outcome for one node."""

    node: str
    """The node's name, or that of its first output."""
    name: str
    """domain::Type"""
    given: bool
    """True if the node has a function now."""
    why: str = ""
    """Why it has none, or that the file already had one."""


def add_functions(model: onnx.ModelProto, only: Iterable[str] | None = None) -> list[Record]:
    """Adds functions for polyop's nodes to `model`, in place; only for those in `only` ("domain::Type") if that is
    given.

    Converts a model of an opset before 16 to opset 16 first (`raise_opset`). Tensors may be external. Returns a record
    per node.
    """
    selected = _full_names(only)
    groups: dict[str, list[onnx.NodeProto]] = {}
    for node in nodes_of(model):
        name = f"{node.domain}::{node.op_type}"
        if (selected is None or name in selected) and is_node(node.domain, node.op_type):
            groups.setdefault(name, []).append(node)
    if not groups:
        return []
    have = {f"{f.domain}::{f.name}" for f in model.functions}
    if any(not name.startswith("::") for name in set(groups) - have):
        raise_opset(model)
        groups = {name: [] for name in groups}
        for node in nodes_of(model):
            if (name := f"{node.domain}::{node.op_type}") in groups:
                groups[name].append(node)
    records = []
    for name, nodes in groups.items():
        why = ""
        if name in have:
            why = "the file already has a function"
        else:
            try:
                model.functions.append(_function(model, nodes))
            except NoBodyError as error:
                why = str(error)
            except Exception as error:  # of one name: the others still get functions
                why = f"creating its function failed: {type(error).__name__}: {one_line(error)}"
        given = name in have or not why
        records += [Record(node.name or next(iter(node.output), ""), name, given, why) for node in nodes]
    if any(record.given for record in records):
        model.ir_version = max(model.ir_version, MIN_IR_VERSION)
    return records


def _full_names(only: Iterable[str] | None) -> set[str] | None:
    """Returns the names with their domain; a name of the default domain may be written without colons."""
    return None if only is None else {name if "::" in name else f"::{name}" for name in only}


def inline(model: onnx.ModelProto, only: Iterable[str] | None = None) -> onnx.ModelProto:
    """Returns a copy in which nodes with functions are replaced by the functions' nodes, for runtimes without
    functions.

    Inlines the functions of polyop's operators, or those in `only`.
    """
    from onnx.inliner import inline_selected_functions

    selected = _full_names(only)
    chosen = [
        (f.domain, f.name)
        for f in model.functions
        if (f"{f.domain}::{f.name}" in selected if selected is not None else is_node(f.domain, f.name))
    ]
    result = (
        inline_selected_functions(model, chosen) if chosen else onnx.ModelProto.FromString(model.SerializeToString())
    )
    used = {node.domain for node in nodes_of(result)} | {f.domain for f in result.functions} | {"", "ai.onnx"}
    for opset in [o for o in result.opset_import if o.domain not in used]:
        result.opset_import.remove(opset)
    return result


def raise_opset(model: onnx.ModelProto, min_opset: int = MIN_OPSET) -> None:
    """Converts the model to opset `min_opset`, in place, if its opset is older: functions use the model's opset.

    Raises ValueError if ONNX cannot convert it.
    """
    if opset_of(model) >= min_opset:
        return
    from onnx.version_converter import convert_version

    before = opset_of(model)
    try:
        functions = list(model.functions)  # the converter drops them, and does not convert their nodes
        model.CopyFrom(convert_version(model, min_opset))
        kept = {(f.domain, f.name) for f in model.functions}
        model.functions.extend(f for f in functions if (f.domain, f.name) not in kept)
        imported = {opset.domain for opset in model.opset_import}
        model.opset_import.extend(
            helper.make_opsetid(domain, 1) for domain in sorted({f.domain for f in functions} - imported)
        )
    except Exception as error:  # the converter raises errors of any type
        raise ValueError(
            f"opset: expected {min_opset} or newer, got {before}, which ONNX cannot convert: {error}"
        ) from error


# ---- nodes that mirror a standard operator -------------------------------------------------------------------


def _mirror_body(
    standard: str, nodes: Sequence[onnx.NodeProto], opset: int
) -> tuple[list[str], list[str], list[onnx.NodeProto]]:
    """Returns the inputs, outputs and nodes of a body that passes everything on to the standard operator."""
    schema = onnx.defs.get_schema(standard, opset)
    inputs = [i.name for i in schema.inputs[: max(len(n.input) for n in nodes)]]
    outputs = [o.name for o in schema.outputs[: max(len(n.output) for n in nodes)]]
    body = helper.make_node(standard, inputs, outputs)
    for name in {a.name: a.type for n in nodes for a in n.attribute}:
        kind = next(a.type for n in nodes for a in n.attribute if a.name == name)
        body.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=name, type=kind))
    # Inputs that no node has are omitted.
    for i in range(len(inputs)):
        if not any(len(n.input) > i and n.input[i] for n in nodes):
            body.input[i] = ""
    return inputs, outputs, [body]


# ---- functions -----------------------------------------------------------------------------------------------


def _function(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> onnx.FunctionProto:
    """Returns one function for all nodes of a name. Raises NoBodyError."""
    domain, op_type, opset = nodes[0].domain, nodes[0].op_type, opset_of(model)
    if not domain:
        raise NoBodyError("expected a domain other than ONNX's own, got none: ONNX has functions of other domains only")
    operator, names = resolve_shared_node(nodes)
    if names["standards"]:
        inputs, outputs, body = _mirror_body(op_type, nodes, opset)
    else:
        inputs, outputs, body = _formula_body(model, nodes, opset, operator, names)
    attributes = sorted({a.name for node in nodes for a in node.attribute})
    return helper.make_function(
        domain, op_type, inputs, outputs, name_nodes(list(body)), [helper.make_opsetid("", opset)], attributes
    )


def _formula_body(
    model: onnx.ModelProto,
    nodes: Sequence[onnx.NodeProto],
    opset: int,
    operator: dict[str, Any],
    names: dict[str, Any],
) -> tuple[list[str], list[str], list[onnx.NodeProto]]:
    try:
        module = formulas.find(operator["name"], operator["package"])
    except ImportError as error:
        raise NoBodyError(f"reading a formula needs torch: {error}") from error
    if module is None:
        raise NoBodyError(operator["not_portable"] or "the operator has no formula")
    inputs, outputs, types = interface(operator, nodes)
    present = tuple(argument.name for i, argument in enumerate(inputs) if len(nodes[0].input) > i and nodes[0].input[i])
    call = Call(opset, present, ranks(model, inputs, nodes))
    chosen, references = variants(operator, names, nodes)
    body = Body(module, inputs, outputs, types, call, references).nodes(chosen)
    return [i.name for i in inputs], [o.name for o in outputs], body


# ---- files ---------------------------------------------------------------------------------------------------


def convert_file(
    path: str | Path, output: str | Path, *, inlined: bool = False, only: Iterable[str] | None = None
) -> dict[str, Any]:
    """Writes the portable form of a file. Returns the records of the nodes, and the opsets before and after.

    External tensors stay in their files, which are copied if `output` is in another folder. All writes are atomic.
    Raises OSError, or ValueError if the file is not a model or cannot be converted.
    """
    path, output = Path(path), Path(output)
    only = None if only is None else list(only)
    model = read_model(path)
    before = opset_of(model)
    records = add_functions(model, only)
    if inlined:
        try:
            model = inline(model, only)
        except Exception as error:  # the inliner raises errors of any type
            raise ValueError(f"{path}: inlining its functions failed: {error}") from error
    remove_stale(output.resolve().parent, deep=False)
    if output.resolve().parent != path.resolve().parent:
        copy_external_files(model, path.resolve().parent, output.resolve().parent)
    write_atomically(output, model.SerializeToString())
    return {"nodes": [asdict(record) for record in records], "opset_before": before, "opset": opset_of(model)}
