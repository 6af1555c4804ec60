# SPDX-License-Identifier: Apache-2.0
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
from polyop._onnx.atomic_file import prepare_folder, write_atomically
from polyop._onnx.catalogue import is_node
from polyop._onnx.files import copy_external_files, read_model
from polyop._onnx.function_bodies import Argument, Body, name_nodes
from polyop._onnx.graph import nodes_in, nodes_of, opset_of
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
    _inline_references(model, selected)
    if any(not name.startswith("::") for name in set(_groups(model, selected)) - _function_names(model)):
        raise_opset(model)
    have = _function_names(model)
    groups = _groups(model, selected)
    reasons = {
        name: "the file already has a function" if name in have else _add(model, groups[name]) for name in groups
    }
    for _ in groups:  # a function may need the ranks of results of other functions
        failed = [name for name, why in reasons.items() if why and name not in have]
        reasons |= {name: _add(model, groups[name]) for name in failed}
        if all(reasons[name] for name in failed):
            break
    records = [
        Record(node.name or next(iter(node.output), ""), name, name in have or not reasons[name], reasons[name])
        for name, nodes in groups.items()
        for node in nodes
    ]
    if any(record.given for record in records):
        model.ir_version = max(model.ir_version, MIN_IR_VERSION)
    return records


def _add(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> str:
    """Adds the function of all nodes of a name. Returns the reason why there is none, or ""."""
    try:
        _add_function(model, nodes)
    except NoBodyError as error:
        return str(error)
    except Exception as error:  # of one name: the others still get functions
        return f"creating its function failed: {type(error).__name__}: {one_line(error)}"
    return ""


def _groups(model: onnx.ModelProto, selected: set[str] | None) -> dict[str, list[onnx.NodeProto]]:
    """Returns polyop's nodes by name, those in `selected` only if it is given."""
    groups: dict[str, list[onnx.NodeProto]] = {}
    for node in nodes_of(model):
        name = f"{node.domain}::{node.op_type}"
        if (selected is None or name in selected) and is_node(node.domain, node.op_type):
            groups.setdefault(name, []).append(node)
    return groups


def _function_names(model: onnx.ModelProto) -> set[str]:
    return {f"{f.domain}::{f.name}" for f in model.functions}


def _inline_references(model: onnx.ModelProto, selected: set[str] | None) -> None:
    """Inlines functions in which nodes of polyop's have attributes that refer to those of the function: only calls of
    the function know the values."""
    from onnx.inliner import inline_selected_functions

    for _ in range(len(model.functions)):  # a call may pass on an attribute of another function
        nodes = [node for of_name in _groups(model, selected).values() for node in of_name]
        referring = [n.SerializeToString() for n in nodes if any(a.ref_attr_name for a in n.attribute)]
        names = [
            (f.domain, f.name)
            for f in model.functions
            if not is_node(f.domain, f.name) and any(n.SerializeToString() in referring for n in nodes_in(f.node))
        ]
        if not names:
            return
        model.CopyFrom(inline_selected_functions(model, names))


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

    ONNX converts graphs, but not functions: those with operators that have changed are inlined first.

    Raises ValueError if ONNX cannot convert it.
    """
    if opset_of(model) >= min_opset:
        return
    from onnx.version_converter import convert_version

    before = opset_of(model)
    try:
        functions = _raise_functions(model, min_opset)
        model.CopyFrom(convert_version(model, min_opset))
        del model.functions[:]
        model.functions.extend(functions)
        imported = {opset.domain for opset in model.opset_import}
        model.opset_import.extend(
            helper.make_opsetid(domain, 1) for domain in sorted({f.domain for f in functions} - imported)
        )
    except Exception as error:  # the converter raises errors of any type
        raise ValueError(
            f"opset: expected {min_opset} or newer, got {before}, which ONNX cannot convert: {error}"
        ) from error


def _raise_functions(model: onnx.ModelProto, opset: int) -> list[onnx.FunctionProto]:
    """Returns the model's functions with this opset, because ONNX's converter drops them. Inlines the others."""
    from onnx.inliner import inline_selected_functions

    changed = {(f.domain, f.name) for f in model.functions if not _has_same_operators(f, opset)}
    for _ in model.functions:  # those that call changed ones get the nodes of these
        changed |= {
            (f.domain, f.name)
            for f in model.functions
            if any((n.domain, n.op_type) in changed for n in nodes_in(f.node))
        }
    if changed:
        model.CopyFrom(inline_selected_functions(model, sorted(changed)))
    functions = []
    for function in model.functions:
        functions.append(onnx.FunctionProto.FromString(function.SerializeToString()))
        for imported in functions[-1].opset_import:
            if imported.domain in ("", "ai.onnx"):
                imported.version = max(imported.version, opset)
    return functions


def _has_same_operators(function: onnx.FunctionProto, opset: int) -> bool:
    """Returns True if the operators of the function's nodes have the same form in its own opset and in this one, or
    differ in their types only."""
    before = next((o.version for o in function.opset_import if o.domain in ("", "ai.onnx")), opset)

    def is_same(op_type: str) -> bool:
        try:
            old, new = onnx.defs.get_schema(op_type, before), onnx.defs.get_schema(op_type, opset)
        except onnx.defs.SchemaError:
            return False
        ports = [[[p.name for p in ports] for ports in (schema.inputs, schema.outputs)] for schema in (old, new)]
        attributes, later = (
            {(a.name, a.required, a.default_value.SerializeToString()) for a in schema.attributes.values()}
            for schema in (old, new)
        )
        added = {default for _, _, default in later - attributes}  # without a default, they change nothing
        return not new.deprecated and ports[0] == ports[1] and attributes <= later and added <= {b""}

    return all(is_same(node.op_type) for node in nodes_in(function.node) if node.domain in ("", "ai.onnx"))


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


def _add_function(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> None:
    """Adds one function for all nodes of a name. Raises NoBodyError."""
    domain, op_type, opset = nodes[0].domain, nodes[0].op_type, opset_of(model)
    if not domain:
        raise NoBodyError("expected a domain other than ONNX's own, got none: ONNX has functions of other domains only")
    operator, names = resolve_shared_node(nodes)
    arguments: list[Argument] = []
    input_ranks: tuple[int | None, ...] = ()
    if any(standard["since"] <= opset for standard in names["standards"]):
        inputs, outputs, body = _mirror_body(op_type, nodes, opset)
    else:
        arguments, _, _ = interface(operator, nodes)
        input_ranks = ranks(model, arguments, nodes, assumed=True)
        inputs, outputs, body = _formula_body(nodes, opset, operator, names, input_ranks)
        for node in nodes:  # ONNX Runtime rejects nodes with fewer outputs than their function
            node.output.extend(f"{node.output[0]}/unused_{name}" for name in outputs[len(node.output) :])
    attributes = sorted({a.name for node in nodes for a in node.attribute})
    model.functions.append(
        helper.make_function(
            domain, op_type, inputs, outputs, name_nodes(list(body)), [helper.make_opsetid("", opset)], attributes
        )
    )
    if ranks(model, arguments, nodes) != input_ranks:  # the function shows what was assumed
        model.functions.pop()
        raise NoBodyError("expected inputs of a known rank that is the same in all nodes of this name")


def _formula_body(
    nodes: Sequence[onnx.NodeProto],
    opset: int,
    operator: dict[str, Any],
    names: dict[str, Any],
    input_ranks: tuple[int | None, ...],
) -> tuple[list[str], list[str], list[onnx.NodeProto]]:
    try:
        module = formulas.find(operator["name"], operator["package"])
    except ImportError as error:
        raise NoBodyError(f"reading a formula needs torch: {error}") from error
    if module is None:
        raise NoBodyError(operator["not_portable"] or "the operator has no formula")
    inputs, outputs, types = interface(operator, nodes)
    present = tuple(argument.name for i, argument in enumerate(inputs) if len(nodes[0].input) > i and nodes[0].input[i])
    call = Call(opset, present, input_ranks)
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
    prepare_folder(output)
    only = None if only is None else list(only)
    model = read_model(path)
    before = opset_of(model)
    records = add_functions(model, only)
    if inlined:
        try:
            model = inline(model, only)
        except Exception as error:  # the inliner raises errors of any type
            raise ValueError(f"{path}: inlining its functions failed: {error}") from error
    copy_external_files(model, path, output.parent)
    write_atomically(output, model.SerializeToString())
    return {"nodes": [asdict(record) for record in records], "opset_before": before, "opset": opset_of(model)}
