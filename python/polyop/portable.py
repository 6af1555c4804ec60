"""Portable files: every node of polyop's gets a model-local function of ONNX's own operators.

Such a file runs in any ONNX Runtime, faster where polyop's library is registered: its kernels come before the functions.
docs/portable-files.md has the details.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx
from onnx import helper

from polyop import formulas
from polyop._catalogue import find_node
from polyop._function_bodies import Body, Variant, name_nodes
from polyop._signatures import Argument, parse
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

    A model of an older opset than 16 is raised to that first, for its sake see `raise_opset`. Tensors may be external.
    """
    wanted = None if only is None else set(only)
    groups: dict[str, list[onnx.NodeProto]] = {}
    for node in _nodes(model):
        name = f"{node.domain}::{node.op_type}"
        if (wanted is None or name in wanted) and (_mirrored(node) or find_node(node.domain, node.op_type)):
            groups.setdefault(name, []).append(node)
    if not groups:
        return []
    have = {f"{f.domain}::{f.name}" for f in model.functions}
    if set(groups) - have:
        raise_opset(model)
        groups = {name: [] for name in groups}
        for node in _nodes(model):
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
        records += [Record(node.name or node.output[0], name, given, why) for node in nodes]
    if any(record.given for record in records):
        model.ir_version = max(model.ir_version, LEAST_IR_VERSION)
    return records


def inline(model: onnx.ModelProto, only: Iterable[str] | None = None) -> onnx.ModelProto:
    """A copy in which the nodes that have functions are replaced by the functions' nodes, for runtimes that know no
    functions: those of polyop's operators, or those in `only`."""
    from onnx.inliner import inline_selected_functions

    wanted = None if only is None else set(only)
    chosen = [
        (f.domain, f.name)
        for f in model.functions
        if (f"{f.domain}::{f.name}" in wanted if wanted is not None else _is_ours(f.domain, f.name))
    ]
    made = inline_selected_functions(model, chosen) if chosen else onnx.ModelProto.FromString(model.SerializeToString())
    used = {node.domain for node in _nodes(made)} | {f.domain for f in made.functions} | {"", "ai.onnx"}
    for opset in [o for o in made.opset_import if o.domain not in used]:
        made.opset_import.remove(opset)
    return made


def raise_opset(model: onnx.ModelProto, least: int = LEAST_OPSET) -> None:
    """Rewrites ONNX's own nodes for opset `least`, in place, if the model's is older: functions share the model's opset."""
    if _opset(model) >= least:
        return
    from onnx.version_converter import convert_version

    before = _opset(model)
    try:
        model.CopyFrom(convert_version(model, least))
    except Exception as error:  # the converter raises whatever its C++ part does
        raise ValueError(f"the model's opset is {before}, wanted {least}; ONNX cannot convert it: {error}") from error


def _opset(model: onnx.ModelProto) -> int:
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)


def _nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
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


def _is_ours(domain: str, op_type: str) -> bool:
    return find_node(domain, op_type) is not None or _mirrors(domain, op_type) is not None


# ---- nodes that mirror a standard operator -------------------------------------------------------------------


def _mirrors(domain: str, op_type: str) -> str | None:
    standard = {"RoiAlign", "GridSample", "NonMaxSuppression", "InstanceNormalization", "Resize"}
    return op_type if domain == "polyop" and op_type in standard else None


def _mirrored(node: onnx.NodeProto) -> str | None:
    return _mirrors(node.domain, node.op_type)


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
    domain, op_type, opset = nodes[0].domain, nodes[0].op_type, _opset(model)
    if standard := _mirrored(nodes[0]):
        inputs, outputs, body = _mirror_body(standard, nodes, opset)
    else:
        inputs, outputs, body = _formula_body(model, nodes, opset)
    attributes = sorted({a.name for node in nodes for a in node.attribute})
    return helper.make_function(
        domain, op_type, inputs, outputs, name_nodes(list(body)), [helper.make_opsetid("", opset)], attributes
    )


def _formula_body(
    model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], opset: int
) -> tuple[list[str], list[str], list[onnx.NodeProto]]:
    operator, names = find_node(nodes[0].domain, nodes[0].op_type)
    try:
        module = formulas.find(operator["name"])
    except ImportError as error:
        raise NoBodyError(f"a formula cannot be read without torch: {error}") from error
    if module is None:
        raise NoBodyError("the operator has no formula")
    inputs, outputs, types = _interface(operator, nodes)
    present = tuple(argument.name for i, argument in enumerate(inputs) if len(nodes[0].input) > i and nodes[0].input[i])
    call = Call(opset, present, _ranks(model, inputs, nodes))
    variants, references = _variants(operator, names, nodes)
    body = Body(module, inputs, outputs, types, call, references).nodes(variants)
    return [i.name for i in inputs], [o.name for o in outputs], body


def _interface(
    operator: dict[str, Any], nodes: Sequence[onnx.NodeProto]
) -> tuple[list[Argument], list[Argument], dict[str, list[str]]]:
    """Inputs, one by one, and outputs that all of the nodes have, and the inputs' types by their names."""
    given = {tuple(bool(name) for name in node.input) for node in nodes}
    given = {presence[: max((i + 1 for i, here in enumerate(presence) if here), default=0)] for presence in given}
    if len(given) > 1:
        raise NoBodyError("its nodes differ in which inputs they have")
    number = len(given.pop())
    forms = [parse(text) for text in operator["signatures"]]
    inputs, types = [], {}
    for i, (argument, spec) in enumerate(zip(forms[0][0], operator["inputs"], strict=True)):
        ranks = {form[0][i].rank for form in forms}
        rank = ranks.pop() if len(ranks) == 1 else None
        own = range(number - i) if argument.variadic else [None]
        for k in own:
            name = argument.name if k is None else f"{argument.name}_{k}"
            inputs.append(replace(argument, name=name, rank=rank))
            types[name] = spec["types"]
    asked = max(len(node.output) for node in nodes)
    outputs = [o for i, o in enumerate(forms[0][1]) if i < asked or not o.optional]
    return inputs, outputs, types


def _ranks(
    model: onnx.ModelProto, inputs: Sequence[Argument], nodes: Sequence[onnx.NodeProto]
) -> tuple[int | None, ...]:
    """Of the inputs: what the signature says, or what is inferred of the model."""
    inferred: dict[str, int] = {}
    if any(argument.rank is None for argument in inputs):
        graph = onnx.shape_inference.infer_shapes(_without_data(model)).graph
        infos = [info for info in (*graph.input, *graph.value_info) if info.type.tensor_type.HasField("shape")]
        inferred = {info.name: len(info.type.tensor_type.shape.dim) for info in infos}
        inferred |= {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    ranks = []
    for i, argument in enumerate(inputs):
        names = [node.input[i] if i < len(node.input) else "" for node in nodes]
        found = {inferred.get(name, argument.rank) if name else None for name in names}
        ranks.append(found.pop() if len(found) == 1 else None)
    return tuple(ranks)


def _without_data(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose large tensors are said to be elsewhere: shapes need them not, and a message holds 2 GB."""
    copy = onnx.ModelProto()
    for name, value in model.ListFields():
        if name.name != "graph":
            _copy_field(copy, name.name, value)
    for name, value in model.graph.ListFields():
        if name.name != "initializer":
            _copy_field(copy.graph, name.name, value)
    for tensor in model.graph.initializer:
        small = copy.graph.initializer.add()
        if helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize * math.prod(tensor.dims) < 1024:
            small.CopyFrom(tensor)
        else:
            small.name, small.data_type = tensor.name, tensor.data_type
            small.dims.extend(tensor.dims)
            small.data_location = onnx.TensorProto.EXTERNAL
            small.external_data.add(key="location", value="left_out")
    return copy


def _copy_field(message: Any, name: str, value: Any) -> None:
    target = getattr(message, name)
    if hasattr(target, "MergeFrom"):
        target.MergeFrom(value)
    elif hasattr(target, "CopyFrom"):
        target.CopyFrom(value)
    else:
        setattr(message, name, value)


# ---- attributes ----------------------------------------------------------------------------------------------


def _variants(
    operator: dict[str, Any], names: dict[str, Any], nodes: Sequence[onnx.NodeProto]
) -> tuple[list[Variant], dict[str, str]]:
    """The sets of attributes that the nodes have, but for numbers; and those that differ, by their names and the nodes'."""
    values = [_values(operator, names, node) for node in nodes]
    differing = [a for a in operator["attributes"] if len({_hashable(v[a["name"]]) for v in values}) > 1]
    written = {a["name"]: _write_in_all(a, names, nodes) for a in differing}
    references = {a["name"]: written[a["name"]] for a in differing if a["type"] == "float" and not a["choices"]}
    chosen: dict[tuple, Variant] = {}
    for node, value in zip(nodes, values, strict=True):
        own = {a["name"]: value[a["name"]] for a in differing if a["name"] not in references}
        raw = {a.name: _plain(helper.get_attribute_value(a)) for a in node.attribute}
        key = tuple(_hashable(v) for v in own.values())
        chosen.setdefault(key, Variant(value, {written[name]: raw[written[name]] for name in own}))
    return list(chosen.values()), references


def _values(operator: dict[str, Any], names: dict[str, Any], node: onnx.NodeProto) -> dict[str, Any]:
    """All of the definition's attributes, by its names."""
    raw = {a.name: _plain(helper.get_attribute_value(a)) for a in node.attribute}
    values = {}
    for attribute in operator["attributes"]:
        name, choices = attribute["name"], attribute["choices"]
        value = next((raw[n] for n in _spellings(attribute, names) if n in raw), attribute["default"])
        value = names["presets"].get(name, value)
        if choices and isinstance(value, int):
            if not 0 <= value < len(choices):
                raise NoBodyError(f"its attribute '{name}' is {value}, wanted 0 to {len(choices) - 1}")
            value = choices[value]
        if attribute["type"] in ("ints", "floats") and not isinstance(value, list):
            value = [value]
        values[name] = value
    return values


def _spellings(attribute: dict[str, Any], names: dict[str, Any]) -> list[str]:
    return [names["renames"].get(attribute["name"], attribute["name"]), *attribute["aliases"]]


def _write_in_all(attribute: dict[str, Any], names: dict[str, Any], nodes: Sequence[onnx.NodeProto]) -> str:
    """The attribute's name on the nodes. Those that lack it get its default: references to nothing have no value."""
    spellings = _spellings(attribute, names)
    used = {a.name for node in nodes for a in node.attribute if a.name in spellings}
    if len(used) > 1:
        raise NoBodyError(
            f"its nodes write the attribute '{attribute['name']}' in several ways: {', '.join(sorted(used))}"
        )
    name = used.pop()
    for node in nodes:
        if not any(a.name == name for a in node.attribute):
            node.attribute.append(helper.make_attribute(name, attribute["default"]))
    return name


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return list(value) if isinstance(value, (list, tuple)) else value


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# ---- files ---------------------------------------------------------------------------------------------------


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m polyop.portable", description=__doc__)
    parser.parse_args(words)


if __name__ == "__main__":
    main()
