# SPDX-License-Identifier: Apache-2.0
"""The nodes of one name in a file: their common interface, and the attributes in which they differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx
from onnx import helper

from polyop._onnx.catalogue import Resolved, resolve, spellings
from polyop._onnx.function_bodies import Argument, Variant
from polyop.formulas import NoBodyError


def resolved(node: onnx.NodeProto) -> Resolved | None:
    """Returns what the node resolves to, or None if no operator has nodes of this name."""
    given = {a.name: None if a.ref_attr_name else helper.get_attribute_value(a) for a in node.attribute}
    return resolve(node.domain, node.op_type, given)


def resolve_node(node: onnx.NodeProto) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Returns the operator that the node resolves to and its node name, or None."""
    found = resolved(node)
    return None if found is None or found.operator is None else (found.operator, found.node)


def resolve_shared_node(nodes: Sequence[onnx.NodeProto]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the operator that all nodes of one name resolve to, and its node name.

    Raises NoBodyError if they resolve to different operators: ONNX has one function per name.
    """
    found = [resolved for node in nodes if (resolved := resolve_node(node)) is not None]
    if len(found) < len(nodes):
        raise NoBodyError("no operator has the attributes of one of the nodes")
    names = sorted({operator["name"] for operator, _ in found})
    if len(names) > 1:
        raise NoBodyError(
            f"expected nodes of one operator, got nodes of {' and '.join(names)}: a name has one function"
        )
    return found[0]


def interface(
    operator: dict[str, Any], nodes: Sequence[onnx.NodeProto]
) -> tuple[list[Argument], list[Argument], dict[str, list[str]]]:
    """Returns the inputs one by one, the outputs that any of the nodes has, and the inputs' types by their names."""
    given = {tuple(bool(name) for name in node.input) for node in nodes}
    given = {presence[: max((i + 1 for i, here in enumerate(presence) if here), default=0)] for presence in given}
    if len(given) > 1:
        raise NoBodyError("expected the same inputs on all nodes, got nodes that omit different ones")
    number = len(given.pop())
    inputs, types = [], {}
    for i, spec in enumerate(operator["inputs"]):
        for k in range(number - i) if spec["variadic"] else [None]:
            name = spec["name"] if k is None else f"{spec['name']}_{k}"
            inputs.append(Argument(name, spec["type"], spec["rank"]))
            types[name] = spec["types"]
    used = max(len(node.output) for node in nodes)
    outputs = [
        Argument(spec["name"], spec["type"], spec["rank"])
        for i, spec in enumerate(operator["outputs"])
        if i < used or not spec["optional"]
    ]
    return inputs, outputs, types


def ranks(
    model: onnx.ModelProto, inputs: Sequence[Argument], nodes: Sequence[onnx.NodeProto], *, assumed: bool = False
) -> tuple[int | None, ...]:
    """Returns the ranks of the inputs, from the signature or from shape inference; None where unknown.

    Shape inference needs functions for polyop's nodes. assumed: nodes with unknown ranks are assumed to have those of
    the others, because they may read results of nodes of the same name.
    """
    inferred: dict[str, int] = {}
    if any(argument.rank is None for argument in inputs):
        inferred = _inferred_ranks(onnx.shape_inference.infer_shapes(_without_data(model)).graph)
    known = []
    for i, argument in enumerate(inputs):
        names = [node.input[i] if i < len(node.input) else "" for node in nodes]
        found = {inferred.get(name, argument.rank) if name else None for name in names}
        found = found - {None} if assumed and any(names) else found
        known.append(found.pop() if len(found) == 1 else None)
    return tuple(known)


def _inferred_ranks(graph: onnx.GraphProto) -> dict[str, int]:
    """Returns the ranks of the values of a graph and of its subgraphs."""
    infos = [i for i in (*graph.input, *graph.output, *graph.value_info) if i.type.tensor_type.HasField("shape")]
    found = {info.name: len(info.type.tensor_type.shape.dim) for info in infos}
    found |= {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                found |= _inferred_ranks(inner)
    return found


def _without_data(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a copy without the data of large tensors: shape inference does not need it, and a message holds 2 GB."""
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
    """Returns the distinct sets of attribute values, and the float attributes that differ and become references, as the
    definition's names mapped to the nodes' names. A set ignores the latter."""
    own_values = [values(node) for node in nodes]
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


def values(node: onnx.NodeProto) -> dict[str, Any]:
    """Returns the values of all attributes of the definition, by its names. Raises NoBodyError for invalid ones."""
    found = resolved(node)
    if found is None or found.error:
        raise NoBodyError("no operator has nodes of this name" if found is None else found.error)
    return found.values


def _write_in_all(attribute: dict[str, Any], names: dict[str, Any], nodes: Sequence[onnx.NodeProto]) -> str:
    """Returns the attribute's name on the nodes. Adds the default to nodes that lack it: a reference needs a value."""
    possible = spellings(attribute, names)
    used = {a.name for node in nodes for a in node.attribute if a.name in possible}
    if len(used) > 1:
        raise NoBodyError(
            f"attribute '{attribute['name']}': expected one spelling on all nodes, got {', '.join(sorted(used))}"
        )
    name = used.pop()
    for node in nodes:
        if not any(a.name == name for a in node.attribute):
            if attribute["default"] is None:
                raise NoBodyError(f"attribute '{name}': expected a value on all nodes, because it has no default")
            node.attribute.append(helper.make_attribute(name, attribute["default"]))
    return name


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return list(value) if isinstance(value, (list, tuple)) else value


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
