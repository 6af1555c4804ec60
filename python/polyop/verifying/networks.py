# SPDX-License-Identifier: Apache-2.0
"""Graphs whose inner values become outputs, parts of them, and pairs of values of two graphs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from polyop._onnx.graph import subgraphs_of


class Network:
    """The main graph of a model. folder: of its external data."""

    def __init__(self, model: onnx.ModelProto, folder: Path | None = None) -> None:
        self.model, self.folder = model, folder
        self.nodes = list(model.graph.node)
        self.producer = {name: i for i, node in enumerate(self.nodes) for name in node.output if name}
        self._initializers = {t.name: t for t in model.graph.initializer}
        self._initializers |= {t.values.name: t for t in model.graph.sparse_initializer}
        self.inputs = [i.name for i in model.graph.input if i.name not in self._initializers]
        self.outputs = [o.name for o in model.graph.output]
        self._types = {v.name: v for v in (*model.graph.output, *model.graph.value_info) if v.type.WhichOneof("value")}
        self._reads = [reads(node) for node in self.nodes]
        self._above: list[int] = []
        for i, names in enumerate(self._reads):
            above = 1 << i
            for name in names:
                above |= self._above[self.producer[name]] if self.producer.get(name, i) < i else 0
            self._above.append(above)

    def above(self, tensor: str) -> int:
        """Returns the nodes that the tensor depends on, its producer included, as bits."""
        return self._above[self.producer[tensor]] if tensor in self.producer else 0

    def cone(self, outputs: Collection[str], stops: Collection[str]) -> tuple[list[int], list[str]]:
        """Returns the nodes between `stops` and the outputs, and the tensors that they read from outside, without
        initializers."""
        found: set[int] = set()
        read: dict[str, None] = {}
        open_ = list(outputs)
        while open_:
            index = self.producer.get(open_.pop())
            if index is None or index in found:
                continue
            found.add(index)
            for name in self._reads[index]:
                if name in stops or name not in self.producer:
                    if name not in self._initializers:
                        read[name] = None
                else:
                    open_.append(name)
        return sorted(found), list(read)

    def with_outputs(self, names: Sequence[str]) -> onnx.ModelProto:
        """Returns a model of the nodes that these outputs depend on."""
        indices, _ = self.cone(names, ())
        inputs = [i for i in self.model.graph.input if i.name in self.inputs]
        return self._model(indices, inputs, names)

    def part(self, outputs: Sequence[str], stops: Collection[str], values: Mapping[str, np.ndarray]) -> onnx.ModelProto:
        """Returns a model of the nodes between `stops` and the outputs. values: of what it reads."""
        indices, read = self.cone(outputs, stops)
        return self._model(indices, [input_like(name, values[name]) for name in read], outputs)

    def _model(
        self, indices: Sequence[int], inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[str]
    ) -> onnx.ModelProto:
        read = {name for i in indices for name in self._reads[i]} | set(outputs)
        initializers = [t for name, t in self._initializers.items() if name in read]
        graph = helper.make_graph(
            [self.nodes[i] for i in indices],
            "part",
            inputs,
            [self._types.get(name, onnx.ValueInfoProto(name=name)) for name in outputs],
            [t for t in initializers if isinstance(t, onnx.TensorProto)],
            sparse_initializer=[t for t in initializers if isinstance(t, onnx.SparseTensorProto)],
        )
        return like(self.model, graph)

    def as_input(self, name: str, array: np.ndarray) -> np.ndarray:
        """Returns real numbers in the type of the input."""
        kind = next(i.type.tensor_type.elem_type for i in self.model.graph.input if i.name == name)
        is_other = array.dtype.kind == "f" and kind in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
        return array.astype(helper.tensor_dtype_to_np_dtype(kind)) if is_other else array

    def initializer(self, name: str) -> onnx.TensorProto | None:
        found = self._initializers.get(name)
        return found if isinstance(found, onnx.TensorProto) else None

    def text(self, index: int) -> str:
        node = self.nodes[index]
        kind = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        return f"{kind} '{node.name}'" if node.name else kind


def like(model: onnx.ModelProto, graph: onnx.GraphProto) -> onnx.ModelProto:
    """Returns a model of the graph with the opsets and functions of another."""
    result = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    result.functions.extend(model.functions)
    return result


def input_like(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def reads(node: onnx.NodeProto) -> list[str]:
    """Returns the names that a node and its subgraphs read from outside."""
    inner = [name for graph in subgraphs_of(node) for name in captured(graph)]
    return list(dict.fromkeys(name for name in (*node.input, *inner) if name))


def captured(graph: onnx.GraphProto) -> list[str]:
    """Returns the names that a subgraph reads from outside."""
    own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    own |= {t.values.name for t in graph.sparse_initializer} | {name for node in graph.node for name in node.output}
    read = [name for node in graph.node for name in reads(node)] + [o.name for o in graph.output]
    return [name for name in dict.fromkeys(read) if name not in own]


# ---- Pairs ----


@dataclass(frozen=True)
class Pairs:
    """The tensors of one graph that are values of another. same: the graphs are equal."""

    of: dict[str, str]
    by_position: frozenset[str]
    same: bool


def pair(ours: Network, theirs: Network) -> Pairs:
    """Pairs tensors by name, if at least half of the nodes with common names are of one kind, and the others by the
    order of nodes."""
    if ours.model.graph.node == theirs.model.graph.node:
        return Pairs({name: name for name in ours.producer}, frozenset(), True)
    common = [name for name in ours.producer if name in theirs.producer]
    alike = sum(_kind(ours, name) == _kind(theirs, name) for name in common)
    named = {name: name for name in common} if 2 * alike >= len(common) else {}
    taken = set(named.values())
    left = [i for i, node in enumerate(ours.nodes) if not any(name in named for name in node.output)]
    others = [i for i, node in enumerate(theirs.nodes) if not any(name in taken for name in node.output)]
    placed = dict(_placed(ours, left, theirs, others))
    ends = zip(ours.outputs, theirs.outputs, strict=False) if len(ours.outputs) == len(theirs.outputs) else ()
    placed |= {a: b for a, b in ends if a not in named and a in ours.producer and b in theirs.producer}
    return Pairs({**placed, **named}, frozenset(a for a, b in placed.items() if a != b), False)


def _kind(network: Network, name: str) -> str:
    return network.nodes[network.producer[name]].op_type


def _placed(ours: Network, left: Sequence[int], theirs: Network, others: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Yields pairs of the outputs of nodes in the same order: of one kind, whose inputs are not of other pairs."""
    partner: dict[str, str] = {}
    inputs = dict(zip(ours.inputs, theirs.inputs, strict=False))
    for i, j in _aligned(*([_signature(n.nodes[k]) for k in of] for n, of in ((ours, left), (theirs, others)))):
        a, b = ours.nodes[left[i]], theirs.nodes[others[j]]
        agree = all(_may_be(x, y, ours, theirs, partner, inputs) for x, y in zip(a.input, b.input, strict=True))
        if agree:
            partner.update((x, y) for x, y in zip(a.output, b.output, strict=True) if x and y)
    yield from partner.items()


def _may_be(
    a: str, b: str, ours: Network, theirs: Network, partner: Mapping[str, str], inputs: Mapping[str, str]
) -> bool:
    """Returns False if the two inputs of nodes are different values of the graphs."""
    if a in ours.inputs or b in theirs.inputs:
        return b in (a, inputs.get(a))
    if (a in ours.producer) != (b in theirs.producer):
        return False
    return partner.get(a, b) == b


def _signature(node: onnx.NodeProto) -> tuple[str, str, int, int]:
    return node.domain, node.op_type, len(node.input), len(node.output)


def _aligned(ours: Sequence[object], theirs: Sequence[object]) -> Iterator[tuple[int, int]]:
    """Yields the positions of equal elements: at the starts, at the ends, and between these. A search for the longest
    common part alone would shift a graph of repeated layers."""
    shorter = min(len(ours), len(theirs))
    start = next((i for i in range(shorter) if ours[i] != theirs[i]), shorter)
    end = next((i for i in range(shorter - start) if ours[-1 - i] != theirs[-1 - i]), shorter - start)
    yield from ((i, i) for i in range(start))
    middle = (ours[start : len(ours) - end], theirs[start : len(theirs) - end])
    if len(middle[0]) == len(middle[1]):
        yield from ((start + i, start + i) for i, (a, b) in enumerate(zip(*middle, strict=True)) if a == b)
    else:
        for block in SequenceMatcher(None, *middle, autojunk=False).get_matching_blocks():
            yield from ((start + block.a + k, start + block.b + k) for k in range(block.size))
    yield from ((len(ours) - end + i, len(theirs) - end + i) for i in range(end))
