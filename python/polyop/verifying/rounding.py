# SPDX-License-Identifier: Apache-2.0
"""Half precision as a device computes it, in single precision with rounding.

ONNX Runtime's CPU provider computes most nodes of float16 in float32, and does not round between them: a value beyond
65,504 does not overflow there. Here each result of such a node is rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from polyop._onnx.graph import graphs_of, nodes_in, subgraphs_of
from polyop.tensorrt.half import with_types

LARGEST = 65504.0
SMALLEST = 2.0**-24  # a positive number below half of it becomes 0
_HEADROOM = 2.0  # other inputs may give larger values than the samples
_MAX_SCALARS = 16  # elements of a constant whose small numbers matter, such as the epsilon of a normalisation
_F32, _F16 = TensorProto.FLOAT, TensorProto.FLOAT16

# Operators whose results are elements of their inputs: rounded already.
_SELECT = frozenset(
    {"Cast", "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "MaxPool", "Relu",
     "Reshape", "ScatterElements", "ScatterND", "Slice", "Split", "Squeeze", "Tile", "TopK", "Transpose", "Unsqueeze",
     "Where"}
)  # fmt: skip
_SUMS = {"ReduceMean": "ReduceSum", "ReduceSum": "ReduceSum", "ReduceL2": "ReduceSumSquare"}


def rounded(halved: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a float32 model that computes what a model of float16 computes, with results rounded to float16."""
    model = with_types(halved)
    for graph in graphs_of(model.graph):
        _round(graph, _types(graph))
    for graph in graphs_of(model.graph):
        for info in (*graph.input, *graph.output, *graph.value_info):
            if info.type.tensor_type.elem_type == _F16:
                info.type.tensor_type.elem_type = _F32
        for tensor in graph.initializer:
            _widen(tensor)
    return model


def _types(graph: onnx.GraphProto) -> dict[str, int]:
    return {i.name: i.type.tensor_type.elem_type for i in (*graph.input, *graph.output, *graph.value_info)}


def _round(graph: onnx.GraphProto, types: Mapping[str, int]) -> None:
    nodes = []
    for node in graph.node:
        to_half = node.op_type == "Cast" and any(a.name == "to" and a.i == _F16 for a in node.attribute)
        results = [name for name in node.output if types.get(name) == _F16]
        for attribute in node.attribute:
            if attribute.name in ("to", "dtype") and attribute.i == _F16:
                attribute.i = _F32
            if attribute.HasField("t"):
                _widen(attribute.t)
        nodes.append(node)
        if not to_half and node.op_type in _SELECT and not any(subgraphs_of(node)):
            continue
        for name in dict.fromkeys([*results, *(node.output if to_half else ())]):
            node.output[list(node.output).index(name)] = f"{name}/exact"
            # Identity keeps the casts apart, which ONNX Runtime would remove.
            nodes += [
                helper.make_node("Cast", [f"{name}/exact"], [f"{name}/half"], to=_F16),
                helper.make_node("Identity", [f"{name}/half"], [f"{name}/rounded"]),
                helper.make_node("Cast", [f"{name}/rounded"], [name], to=_F32),
            ]
    del graph.node[:]
    graph.node.extend(nodes)


def _widen(tensor: TensorProto) -> None:
    if tensor.data_type == _F16:
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), name))


# ---- What half precision cannot hold ----


@dataclass(frozen=True)
class Overflow:
    """Why a node stays in single precision."""

    node: str
    why: str


Probed = dict[str, list[tuple[str, str]]]
"""The nodes that a value of a run concerns, by the output that has it, with a text for each."""


def with_ranges(model: onnx.ModelProto) -> tuple[onnx.ModelProto, Probed]:
    """Returns the model with outputs that are the largest magnitudes of its values, and of the sums that nodes compute
    inside; and what they are."""
    result = with_types(model)
    graph = result.graph
    types = _types(graph)
    readers: dict[str, list[str]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node.name)
    producers = {name: node.name for node in graph.node for name in node.output}
    probed: Probed = {}
    added: list[onnx.NodeProto] = []
    for name in [*(i.name for i in graph.input), *producers]:
        if name and types.get(name) == _F32:
            probe = f"polyop:largest:{len(probed)}"
            added += _largest(name, probe)
            own = [(producers[name], f"its result '{name}' reaches")] if name in producers else []
            probed[probe] = [*own, *((reader, f"its input '{name}' reaches") for reader in readers.get(name, []))]
    for node in list(graph.node):
        if node.op_type in _SUMS and types.get(node.output[0]) == _F32:
            probe = f"polyop:largest:{len(probed)}"
            added += [*_sum(result, node, probe), *_largest(f"{probe}:sum", probe)]
            probed[probe] = [(node.name, "the sum that it computes reaches")]
    graph.node.extend(added)
    del graph.output[:]
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in probed)
    return result, probed


def _sum(model: onnx.ModelProto, node: onnx.NodeProto, probe: str) -> list[onnx.NodeProto]:
    """Nodes for the sum of magnitudes, or of squares, that a reduction computes."""
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    inner.op_type, inner.name = _SUMS[node.op_type], ""
    inner.input[0], inner.output[0] = f"{probe}:abs", f"{probe}:sum"
    axes = next((a for a in inner.attribute if a.name == "axes"), None)
    if axes is not None and inner.op_type == "ReduceSum":  # whose axes are an input before those of other reductions
        model.graph.initializer.append(numpy_helper.from_array(np.array(axes.ints, np.int64), f"{probe}:axes"))
        inner.input.append(f"{probe}:axes")
        inner.attribute.remove(axes)
    return [helper.make_node("Abs", [node.input[0]], [f"{probe}:abs"]), inner]


def _largest(name: str, result: str) -> list[onnx.NodeProto]:
    """Nodes for the largest magnitude; 0 for an empty tensor."""
    shape = f"{result}:all"
    return [
        helper.make_node("Abs", [name], [f"{result}:magnitudes"]),
        helper.make_node("Constant", [], [shape], value_ints=[-1]),
        helper.make_node("Reshape", [f"{result}:magnitudes", shape], [f"{result}:flat"]),
        helper.make_node("Constant", [], [f"{result}:zero"], value_floats=[0.0]),
        helper.make_node("Concat", [f"{result}:zero", f"{result}:flat"], [f"{result}:some"], axis=0),
        helper.make_node("ReduceMax", [f"{result}:some"], [result], keepdims=0),
    ]


def overflows(probed: Probed, runs: Sequence[Mapping[str, np.ndarray]]) -> Iterator[Overflow]:
    """Yields the nodes whose values are too large for half precision, with some headroom, on the samples."""
    for probe, concerned in probed.items():
        values = [float(run[probe]) for run in runs]
        largest = max((v for v in values if np.isfinite(v)), default=0.0)
        if largest * _HEADROOM > LARGEST:
            yield from (Overflow(node, f"{text} {largest:.4g}") for node, text in concerned)


def bad_constants(model: onnx.ModelProto) -> Iterator[Overflow]:
    """Yields the nodes with constants that become infinite or 0 in half precision."""
    for graph in graphs_of(model.graph):
        tensors = {t.name: t for t in graph.initializer if t.data_type == _F32}
        for node in graph.node:
            if node.op_type == "Constant":
                values = (a.t for a in node.attribute if a.name == "value" and a.t.data_type == _F32)
                tensors |= dict(zip(node.output, values, strict=False))
        whys = {name: why for name, tensor in tensors.items() if (why := _bad(tensor))}
        for node in graph.node:
            for name in node.input:
                if name in whys:
                    yield Overflow(node.name, f"its constant '{name}' has {whys[name]}")


def _bad(tensor: TensorProto) -> str:
    if tensor.external_data:
        return ""  # loaded before; a weight that is still outside is looked at as a value
    values = np.abs(numpy_helper.to_array(tensor).astype(np.float64)).reshape(-1)
    values = values[np.isfinite(values)]
    if values.size and values.max() > LARGEST:
        return f"{values.max():.4g}, which is infinite in half precision"
    positive = values[values > 0]
    if positive.size > 0 and values.size <= _MAX_SCALARS and positive.min() < SMALLEST / 2:
        return f"{positive.min():.4g}, which is 0 in half precision"
    return ""


def name_nodes(model: onnx.ModelProto) -> None:
    """Gives every node a separate name."""
    taken: set[str] = set()
    for node in nodes_in(model.graph.node):
        base = node.name or (node.output[0] if node.output else "") or node.op_type
        name, k = base, 1
        while name in taken:
            k += 1
            name = f"{base}/{k}"
        taken.add(name)
        node.name = name


def names_in(nodes: Iterable[onnx.NodeProto]) -> list[str]:
    """Returns the names of nodes and of those in their subgraphs."""
    return [node.name for node in nodes_in(nodes)]
