"""What the nodes of one name in a file have in common, and in what they differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import onnx
from onnx import helper

from polyop._catalogue import find_node, is_node, spellings
from polyop._function_bodies import Variant
from polyop._signatures import Argument, parse
from polyop.formulas import NoBodyError


def meant(node: onnx.NodeProto) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The operator that the node means, and its node name, or None."""
    if not is_node(node.domain, node.op_type):
        return None
    given = [a for a in node.attribute if not a.ref_attr_name]
    return find_node(node.domain, node.op_type, {a.name: helper.get_attribute_value(a) for a in given})


def meant_by_all(nodes: Sequence[onnx.NodeProto]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the nodes of one name mean; raises NoBodyError if that is not the same: ONNX has one function for a name."""
    found = [meant(node) for node in nodes]
    if None in found:
        raise NoBodyError("the attributes of one of its nodes mean no operator")
    names = sorted({operator["name"] for operator, _ in found})
    if len(names) > 1:
        raise NoBodyError(f"its nodes mean different operators, {' and '.join(names)}, and a name has one function")
    return found[0]


def interface(
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


def ranks(
    model: onnx.ModelProto, inputs: Sequence[Argument], nodes: Sequence[onnx.NodeProto]
) -> tuple[int | None, ...]:
    """Of the inputs: what the signature says, or what is inferred of the model."""
    inferred: dict[str, int] = {}
    if any(argument.rank is None for argument in inputs):
        graph = onnx.shape_inference.infer_shapes(_without_data(model)).graph
        infos = [info for info in (*graph.input, *graph.value_info) if info.type.tensor_type.HasField("shape")]
        inferred = {info.name: len(info.type.tensor_type.shape.dim) for info in infos}
        inferred |= {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    known = []
    for i, argument in enumerate(inputs):
        names = [node.input[i] if i < len(node.input) else "" for node in nodes]
        found = {inferred.get(name, argument.rank) if name else None for name in names}
        known.append(found.pop() if len(found) == 1 else None)
    return tuple(known)


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


def variants(
    operator: dict[str, Any], names: dict[str, Any], nodes: Sequence[onnx.NodeProto]
) -> tuple[list[Variant], dict[str, str]]:
    """The sets of attributes that the nodes have, but for numbers; and those that differ, by their names and the nodes'."""
    own_values = [values(operator, names, node) for node in nodes]
    differing = [a for a in operator["attributes"] if len({_hashable(v[a["name"]]) for v in own_values}) > 1]
    written = {a["name"]: _write_in_all(a, names, nodes) for a in differing}
    references = {a["name"]: written[a["name"]] for a in differing if a["type"] == "float" and not a["choices"]}
    chosen: dict[tuple, Variant] = {}
    for node, value in zip(nodes, own_values, strict=True):
        own = {a["name"]: value[a["name"]] for a in differing if a["name"] not in references}
        raw = {a.name: _plain(helper.get_attribute_value(a)) for a in node.attribute}
        key = tuple(_hashable(v) for v in own.values())
        chosen.setdefault(key, Variant(value, {written[name]: raw[written[name]] for name in own}))
    return list(chosen.values()), references


def values(operator: dict[str, Any], names: dict[str, Any], node: onnx.NodeProto) -> dict[str, Any]:
    """All of the definition's attributes, by its names."""
    raw = {a.name: _plain(helper.get_attribute_value(a)) for a in node.attribute}
    found = {}
    for attribute in operator["attributes"]:
        name, choices = attribute["name"], attribute["choices"]
        value = next((raw[n] for n in spellings(attribute, names) if n in raw), attribute["default"])
        if name in names["presets"]:
            preset = names["presets"][name]
            value = int(preset) if attribute["type"] == "int" and not choices else preset
        value = next((ours for ours, theirs in names["spellings"].items() if value == theirs), value)
        if choices and isinstance(value, int):
            if not 0 <= value < len(choices):
                raise NoBodyError(f"its attribute '{name}' is {value}, wanted 0 to {len(choices) - 1}")
            value = choices[value]
        if attribute["type"] in ("ints", "floats") and not isinstance(value, list):
            value = [value]
        found[name] = value
    return found


def _write_in_all(attribute: dict[str, Any], names: dict[str, Any], nodes: Sequence[onnx.NodeProto]) -> str:
    """The attribute's name on the nodes. Those that lack it get its default: references to nothing have no value."""
    possible = spellings(attribute, names)
    used = {a.name for node in nodes for a in node.attribute if a.name in possible}
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
