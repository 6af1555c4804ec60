# SPDX-License-Identifier: Apache-2.0
"""Converts models to half precision with ONNX Runtime's converter, and repairs what it does not support."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import onnx
from onnx import helper

from polyop._onnx.catalogue import operators
from polyop._onnx.graph import graphs_of, subgraphs_of
from polyop._onnx.node_groups import resolve_node
from polyop.tensorrt.graph import ModelError


def to_fp16(model: onnx.ModelProto, keep: Collection[str] = ()) -> onnx.ModelProto:
    """Returns a copy that computes in half precision, also in branches and loops. Inputs and outputs keep their types.
    keep: the names of nodes that compute in single precision, of an If, a Loop or a Scan with those inside.

    TensorRT 11 and RTX are strongly typed: a network computes in the model's types. Operators without half-precision
    kernels (suppression, nearest neighbours) keep single precision, with casts around them. Functions are inlined.
    """
    blocked, prepared = blocked_operators(), _prepared(model)
    from onnxruntime.transformers.float16 import convert_float_to_float16

    halved = convert_float_to_float16(
        prepared, keep_io_types=True, op_block_list=blocked, node_block_list=list(keep), disable_shape_infer=True
    )
    _move_casts(halved)
    _cast_captured(halved, {*keep}, {*blocked})
    for graph in graphs_of(halved.graph):
        _merge_casts(graph)
    _correct_types(_without_round_trips(halved))
    return halved


def _cast_captured(model: onnx.ModelProto, keep: Collection[str], blocked: Collection[str]) -> None:
    """Casts the values of half precision that nodes with subgraphs read from outside, if they stay in single
    precision: the converter leaves their subgraphs as they are."""
    graph = model.graph
    kept = [n for n in graph.node if (n.name in keep or n.op_type in blocked) and subgraphs_of(n)]
    if not kept:
        return
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    for each in graphs_of(bare.graph):
        del each.value_info[:]
    types = _types(with_types(bare).graph)
    casts: dict[str, onnx.NodeProto] = {}
    for node in kept:
        for inner in subgraphs_of(node):
            own = {i.name for i in inner.input} | {t.name for t in inner.initializer}
            own |= {name for each in inner.node for name in each.output}
            names = [n for n in sorted(_reads(inner) - own) if types.get(n) == onnx.TensorProto.FLOAT16]
            for name in names:
                casts[name] = helper.make_node("Cast", [name], [f"{name}/single"], to=onnx.TensorProto.FLOAT)
            _replace_reads(inner, {name: f"{name}/single" for name in names})
    graph.node.extend(casts.values())
    _sort(graph)


def _correct_types(model: onnx.ModelProto) -> None:
    """Corrects the types of values that the converter states wrong, and removes those that are not known."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    for graph in graphs_of(bare.graph):
        del graph.value_info[:]
    for graph, typed in zip(graphs_of(model.graph), graphs_of(with_types(bare).graph), strict=True):
        types, infos = _types(typed), []
        for info in graph.value_info:
            if kind := types.get(info.name):
                info.type.tensor_type.elem_type = kind
                infos.append(onnx.ValueInfoProto.FromString(info.SerializeToString()))
        del graph.value_info[:]
        graph.value_info.extend(infos)


def blocked_operators() -> list[str]:
    """Returns the types of nodes that stay in single precision. Raises ModelError if the converter is missing."""
    try:
        from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST
    except ImportError as error:
        raise ModelError(f"fp16 needs ONNX Runtime's converter: pip install onnxruntime ({error})") from None
    single = {f"polyop_{operator['name']}" for operator in operators() if not operator["half"]}
    for operator in operators():
        if not operator["half"]:
            single |= {node["name"].split("::")[1] for node in operator["nodes"]}
    # The converter's own list has what ONNX Runtime's CPU lacks in half precision; TensorRT has most of it.
    return [*single, *(op for op in DEFAULT_OP_BLOCK_LIST if op not in ("Resize", "Upsample"))]


def with_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a copy with the types of all values that can be inferred, also from polyop's nodes."""
    while True:  # each round infers the types up to polyop's next nodes
        try:
            model = onnx.shape_inference.infer_shapes(model)
        except Exception:  # of models that are too large, or whose shapes do not fit
            return model
        if not _add_types(model.graph, {}):
            return model


def _prepared(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a copy in the form that the converter supports: without functions, with constants as initializers, and
    with the types of all values that can be inferred."""
    from onnx.inliner import inline_local_functions

    result = onnx.ModelProto()
    result.CopyFrom(inline_local_functions(model) if model.functions else model)
    for graph in graphs_of(result.graph):
        kept = []
        for node in graph.node:
            value = next((a.t for a in node.attribute if a.name == "value"), None)
            if node.op_type == "Constant" and node.domain in ("", "ai.onnx") and value is not None:
                graph.initializer.add().CopyFrom(value)
                graph.initializer[-1].name = node.output[0]
            else:
                kept.append(node)
        del graph.node[:]
        graph.node.extend(kept)
        tensors = {tensor.name: tensor for tensor in graph.initializer}
        for node in graph.node:  # scales stay in single precision, also if others read the tensor
            if node.op_type == "Resize" and len(node.input) > 2 and node.input[2] in tensors:
                graph.initializer.add().CopyFrom(tensors[node.input[2]])
                node.input[2] = graph.initializer[-1].name = f"{node.output[0]}/scales"
    return with_types(result)


def _add_types(graph: onnx.GraphProto, outside: Mapping[str, int]) -> bool:
    """Adds the types of the outputs of polyop's nodes, which shape inference does not know. Returns True if it has."""
    types = {**outside, **_types(graph)}
    added = False
    for node in graph.node:
        for inner in subgraphs_of(node):
            added |= _add_types(inner, types)
        if (found := resolve_node(node)) is None:
            continue
        known = {spec["type"]: types.get(name, 0) for spec, name in zip(found[0]["inputs"], node.input, strict=False)}
        names = {"f32": onnx.TensorProto.FLOAT, "i32": onnx.TensorProto.INT32, "i64": onnx.TensorProto.INT64}
        for spec, name in zip(found[0]["outputs"], node.output, strict=False):
            kind = names.get(spec["type"], known.get(spec["type"], 0))
            if name and name not in types and kind:
                info = graph.value_info.add()
                info.CopyFrom(helper.make_tensor_value_info(name, kind, None))
                types[name], added = kind, True
    for info in graph.output:
        if info.name in types and not info.type.WhichOneof("value"):
            info.type.tensor_type.elem_type, added = types[info.name], True
    return added


def _types(graph: onnx.GraphProto) -> dict[str, int]:
    infos = [i for i in (*graph.input, *graph.output, *graph.value_info) if i.type.tensor_type.elem_type]
    return {i.name: i.type.tensor_type.elem_type for i in infos} | {t.name: t.data_type for t in graph.initializer}


def _move_casts(model: onnx.ModelProto) -> None:
    """Moves the converter's casts, which are all in the main graph and may be repeated, to the graphs that produce
    their inputs; sorts the graphs."""
    homes: dict[str, onnx.GraphProto] = {}
    for graph in graphs_of(model.graph):
        names = [i.name for i in graph.input] + [t.name for t in graph.initializer]
        homes |= dict.fromkeys([*names, *(name for node in graph.node for name in node.output)], graph)
    casts = {node.output[0]: node for node in model.graph.node if _cast_to(node)}
    for i in reversed(range(len(model.graph.node))):
        if _cast_to(model.graph.node[i]):
            del model.graph.node[i]
    for node in casts.values():
        source = node.input[0]
        while source in casts:
            source = casts[source].input[0]
        homes.get(source, model.graph).node.append(node)
    for graph in graphs_of(model.graph):
        _sort(graph)
    for i, graph in enumerate(graphs_of(model.graph)):
        for j, node in enumerate(graph.node):
            node.name = f"{node.name}/{i}.{j}" if _cast_to(node) else node.name


def _merge_casts(graph: onnx.GraphProto) -> None:
    """Keeps one of the casts of a value to a type."""
    first: dict[tuple[str, int], str] = {}
    outputs = {info.name for info in graph.output}
    replacement, kept = {}, []
    for node in graph.node:
        to = _cast_to(node)
        if to and node.output[0] not in outputs:
            name = first.setdefault((node.input[0], to), node.output[0])
            if name != node.output[0]:
                replacement[node.output[0]] = name
                continue
        kept.append(node)
    if replacement:
        del graph.node[:]
        graph.node.extend(kept)
        _replace_reads(graph, replacement)


def _sort(graph: onnx.GraphProto) -> None:
    """Sorts the nodes topologically. Keeps their order where possible."""
    producers = {name: i for i, node in enumerate(graph.node) for name in node.output}
    nodes = list(graph.node)
    order: list[onnx.NodeProto] = []
    done: set[int] = set()
    for first in range(len(nodes)):
        open_ = [first]
        while open_:
            i = open_[-1]
            missing = [producers[name] for name in _reads_of(nodes[i]) if producers.get(name, i) not in done | {i}]
            if missing:
                open_ += missing
                continue
            open_.pop()
            if i not in done:
                done.add(i)
                order.append(nodes[i])
    del graph.node[:]
    graph.node.extend(order)


def _reads_of(node: onnx.NodeProto) -> set[str]:
    return set(node.input).union(*(_reads(inner) for inner in subgraphs_of(node)))


def _without_round_trips(model: onnx.ModelProto) -> onnx.ModelProto:
    """Removes casts from single to half precision and back: boxes would lose their last bits.

    Only a value that is float32 before the casts replaces the result; casts of integers are needed. In branches and
    bodies, too.
    """
    floats = _float32_values(model)
    _remove_round_trips(model.graph, floats)
    return model


def _float32_values(model: onnx.ModelProto) -> set[str]:
    """Returns the names of values that are known to be float32: by a cast, by the file, or by shape inference."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
    except Exception:  # of models that are too large, or whose shapes do not fit; casts and inputs are known without
        inferred = model
    found: set[str] = set()
    other: set[str] = set()

    def add(graph: onnx.GraphProto) -> None:
        for info in (*graph.input, *graph.output, *graph.value_info):
            if kind := info.type.tensor_type.elem_type:
                (found if kind == onnx.TensorProto.FLOAT else other).add(info.name)
        for tensor in graph.initializer:
            (found if tensor.data_type == onnx.TensorProto.FLOAT else other).add(tensor.name)
        for node in graph.node:
            if node.op_type == "Cast":
                (found if _cast_to(node) == onnx.TensorProto.FLOAT else other).add(node.output[0])
            for inner in subgraphs_of(node):
                add(inner)

    add(inferred.graph)
    return found - other


def _cast_to(node: onnx.NodeProto | None) -> int:
    """Returns the type that a Cast node converts to, or 0 for another node."""
    if node is None or node.op_type != "Cast" or node.domain not in ("", "ai.onnx"):
        return 0
    return next((a.i for a in node.attribute if a.name == "to"), 0)


def _reads(graph: onnx.GraphProto) -> set[str]:
    """Returns the values that a graph's nodes read, in subgraphs too, and its outputs."""
    inner = [_reads(sub) for node in graph.node for sub in subgraphs_of(node)]
    return {o.name for o in graph.output}.union(*inner, *(node.input for node in graph.node))


def _replace_reads(graph: onnx.GraphProto, replacement: Mapping[str, str]) -> None:
    for node in graph.node:
        node.input[:] = [replacement.get(name, name) for name in node.input]
        for inner in subgraphs_of(node):
            _replace_reads(inner, replacement)


def _remove_round_trips(graph: onnx.GraphProto, floats: set[str]) -> None:
    for node in graph.node:
        for inner in subgraphs_of(node):
            _remove_round_trips(inner, floats)
    producer = {output: node for node in graph.node for output in node.output}
    outputs = {info.name for info in graph.output}
    replacement: dict[str, str] = {}
    for node in list(graph.node):
        cut = producer.get(node.input[0]) if _cast_to(node) == onnx.TensorProto.FLOAT else None
        if _cast_to(cut) != onnx.TensorProto.FLOAT16 or cut is None or cut.input[0] not in floats:
            continue
        source, result = cut.input[0], node.output[0]
        if result not in outputs:
            replacement[result] = source
        elif source in producer and source not in outputs and source not in replacement:
            places = [i for i, name in enumerate(producer[source].output) if name == source]
            producer[source].output[places[0]] = result  # the graph's output is the exact value
            replacement[source] = result
            graph.node.remove(node)
    replacement = {name: replacement.get(source, source) for name, source in replacement.items()}
    _replace_reads(graph, replacement)
    casts = {n.output[0] for n in graph.node if n.output and n.output[0] in replacement}
    casts |= {producer[name].input[0] for name in casts}
    for _ in range(2):  # the casts to single precision, then those to half
        used = _reads(graph)
        kept = [node for node in graph.node if not (casts & set(node.output)) or used & set(node.output)]
        del graph.node[:]
        graph.node.extend(kept)
