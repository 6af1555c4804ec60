"""Portable files: every node of polyop's gets a model-local function of ONNX's own operators.

Such a file runs in any ONNX Runtime, faster where polyop's library is registered: its kernels come before the functions.
docs/portable-files.md has the details.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import helper

import polyop.formulas as formulas  # not `from polyop import`, for which polyop would look at PyTorch's part first
from polyop._catalogue import is_node
from polyop._function_bodies import Body, name_nodes
from polyop._node_groups import interface, meant_by_all, ranks, variants
from polyop._whole_files import WholeFile, sweep, write_whole
from polyop.formulas import Call, NoBodyError

__all__ = ["Record", "add_functions", "inline"]

LEAST_OPSET = 16
"""What bodies need: GridSample, RoiAlign's half pixels, CastLike."""
LEAST_IR_VERSION = 8
"""The first with functions."""


@dataclass(frozen=True)
class Record:
    """What became of one node."""

    node: str
    """Its name, or that of its first output."""
    name: str
    """domain::Type"""
    given: bool
    """Whether it has a function now."""
    why: str = ""
    """Why not; or that the file had one."""


def add_functions(model: onnx.ModelProto, only: Iterable[str] | None = None) -> list[Record]:
    """Gives polyop's nodes of `model` their functions, in place; of those in `only` ("domain::Type") if it is there.

    A model of an older opset than 16 is raised to that first (`raise_opset`). Tensors may be external.
    """
    wanted = _wanted(only)
    groups: dict[str, list[onnx.NodeProto]] = {}
    for node in nodes_of(model):
        name = f"{node.domain}::{node.op_type}"
        if (wanted is None or name in wanted) and is_node(node.domain, node.op_type):
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
            why = "the file has a function of its own"
        else:
            try:
                model.functions.append(_function(model, nodes))
            except NoBodyError as error:
                why = str(error)
        given = name in have or not why
        records += [Record(node.name or next(iter(node.output), ""), name, given, why) for node in nodes]
    if any(record.given for record in records):
        model.ir_version = max(model.ir_version, LEAST_IR_VERSION)
    return records


def _wanted(only: Iterable[str] | None) -> set[str] | None:
    """In full: a name of the default domain may stand without colons."""
    return None if only is None else {name if "::" in name else f"::{name}" for name in only}


def inline(model: onnx.ModelProto, only: Iterable[str] | None = None) -> onnx.ModelProto:
    """A copy in which the nodes that have functions are replaced by the functions' nodes, for runtimes that know no
    functions: those of polyop's operators, or those in `only`."""
    from onnx.inliner import inline_selected_functions

    wanted = _wanted(only)
    chosen = [
        (f.domain, f.name)
        for f in model.functions
        if (f"{f.domain}::{f.name}" in wanted if wanted is not None else is_node(f.domain, f.name))
    ]
    made = inline_selected_functions(model, chosen) if chosen else onnx.ModelProto.FromString(model.SerializeToString())
    used = {node.domain for node in nodes_of(made)} | {f.domain for f in made.functions} | {"", "ai.onnx"}
    for opset in [o for o in made.opset_import if o.domain not in used]:
        made.opset_import.remove(opset)
    return made


def raise_opset(model: onnx.ModelProto, least: int = LEAST_OPSET) -> None:
    """Rewrites ONNX's own nodes for opset `least`, in place, if the model's is older: functions share the model's opset."""
    if opset_of(model) >= least:
        return
    from onnx.version_converter import convert_version

    before = opset_of(model)
    try:
        model.CopyFrom(convert_version(model, least))
    except Exception as error:  # the converter raises whatever its C++ part does
        raise ValueError(f"the model's opset is {before}, wanted {least}; ONNX cannot convert it: {error}") from error


def opset_of(model: onnx.ModelProto) -> int:
    """The version of ONNX's own operators."""
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)


def nodes_of(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Of the graph, of its subgraphs and of the model's functions."""

    def walk(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
        for node in nodes:
            yield node
            for attribute in node.attribute:
                yield from walk(attribute.g.node)
                for graph in attribute.graphs:
                    yield from walk(graph.node)

    yield from walk(model.graph.node)
    for function in model.functions:
        yield from walk(function.node)


# ---- nodes that mirror a standard operator -------------------------------------------------------------------


def _mirror_body(standard: str, nodes: Sequence[onnx.NodeProto], opset: int) -> tuple[list[str], list[str], list]:
    """Inputs and attributes are the standard operator's own, so they are handed on."""
    schema = onnx.defs.get_schema(standard, opset)
    inputs = [i.name for i in schema.inputs[: max(len(n.input) for n in nodes)]]
    outputs = [o.name for o in schema.outputs[: max(len(n.output) for n in nodes)]]
    body = helper.make_node(standard, inputs, outputs)
    for name in {a.name: a.type for n in nodes for a in n.attribute}:
        kind = next(a.type for n in nodes for a in n.attribute if a.name == name)
        body.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=name, type=kind))
    # What no node has is not there.
    for i in range(len(inputs)):
        if not any(len(n.input) > i and n.input[i] for n in nodes):
            body.input[i] = ""
    return inputs, outputs, [body]


# ---- functions -----------------------------------------------------------------------------------------------


def _function(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> onnx.FunctionProto:
    """One for all nodes of a name. Raises NoBodyError."""
    domain, op_type, opset = nodes[0].domain, nodes[0].op_type, opset_of(model)
    if not domain:
        raise NoBodyError("its nodes have no domain: ONNX takes functions of other domains than its own alone")
    operator, names = meant_by_all(nodes)
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
        raise NoBodyError(f"a formula cannot be read without torch: {error}") from error
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
) -> dict[str, object]:
    """Writes the portable form of a file; returns what became of each node, and the opsets before and after.

    Tensors in files beside the model stay there; they are copied if `output` lies in another folder. Nothing is left
    half-written. Raises OSError, or ValueError for what is no model, or none that can be converted.
    """
    path, output = Path(path), Path(output)
    only = None if only is None else list(only)
    model = _read(path)
    before = opset_of(model)
    records = add_functions(model, only)
    if inlined:
        try:
            model = inline(model, only)
        except Exception as error:  # the inliner raises whatever its C++ part does
            raise ValueError(f"{path}: its functions cannot become nodes: {error}") from error
    sweep(output.resolve().parent, deep=False)
    if output.resolve().parent != path.resolve().parent:
        _copy_external_data(model, path.resolve().parent, output.resolve().parent)
    write_whole(output, model.SerializeToString())
    return {"nodes": [asdict(record) for record in records], "opset_before": before, "opset": opset_of(model)}


def _read(path: Path) -> onnx.ModelProto:
    try:
        model = onnx.load(path, load_external_data=False)
    except OSError:
        raise
    except Exception as error:  # protobuf's errors have no type of ONNX's
        raise ValueError(f"{path} is no ONNX model, or damaged: {error}") from error
    if not model.graph.node:
        raise ValueError(f"{path} is no ONNX model, or damaged: its graph has no nodes")
    return model


def _copy_external_data(model: onnx.ModelProto, source: Path, target: Path) -> None:
    tensors = [*model.graph.initializer, *(a.t for node in nodes_of(model) for a in node.attribute)]
    locations = {entry.value for t in tensors for entry in t.external_data if entry.key == "location"}
    copies = {location: (target / location).resolve() for location in sorted(locations)}
    for location, to in copies.items():
        if target not in to.parents:
            raise ValueError(
                f"tensors lie in '{location}', outside of the model's folder: write the file beside the model"
            )
        if to.exists():
            raise ValueError(f"{to} is there already: tensors of the model would overwrite it")
        if not (source / location).is_file():
            raise ValueError(f"tensors lie in '{location}', which is missing in {source}")
    for location, to in copies.items():
        to.parent.mkdir(parents=True, exist_ok=True)
        with WholeFile(to) as new:
            shutil.copyfile(source / location, new)


def main(words: Sequence[str] | None = None) -> None:
    """For `polyop portable`, which reads the report; errors of the model are in it."""
    parser = argparse.ArgumentParser(prog="python -m polyop.portable", description=__doc__)
    parser.add_argument("model")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--inline", action="store_true", help="nodes of functions in the place of polyop's")
    parser.add_argument("--only", action="append", help="DOMAIN::TYPE")
    parser.add_argument("--report", help="where a report in JSON goes")
    given = parser.parse_args(words)
    try:
        report = convert_file(given.model, given.output, inlined=given.inline, only=given.only)
    except (OSError, ValueError, ImportError) as error:
        if given.report is None:
            raise SystemExit(str(error)) from error
        report = {"error": str(error)}
    if given.report is not None:
        Path(given.report).write_text(json.dumps(report))


if __name__ == "__main__":
    main()
