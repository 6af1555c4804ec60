# SPDX-License-Identifier: Apache-2.0
"""Random graphs of a few nodes: nodes of polyop as exporters write them, and standard ONNX nodes.

A graph grows node by node. Each polyop node is run alone in ONNX Runtime with its inputs, so that every value of the
graph is known before the whole graph runs. Values are connected so that two runtimes that round differently still
agree: inexact results reach only inputs in which the operator is continuous.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.support import single_node
from tests.support.exported_nodes import NODES, Node
from tests.support.portable_calls import operator_of

MAX_NODES = 8
OPSET = 17

# Inputs that may hold any numbers. The others hold boxes, coordinates, indices and sizes, and keep the values of the
# exporter's call. An operator that outputs integers decides by these numbers, so they must be exact.
FREE = frozenset(
    ["input", "X", "features", "feats", "feat", "value", "query", "key", "q", "k", "v", "img", "a", "b", "data", "updates",
     "weight", "filters", "bias", "scale", "B", "depth", "attention_weights", "scores", "masks"]
)  # fmt: skip
ILL_CONDITIONED = frozenset(["inverse", "instance_norm"])  # may enlarge a difference without bound


@dataclass(frozen=True)
class Wire:
    """A tensor of the graph, its value, and whether every runtime computes the same bits."""

    name: str
    array: np.ndarray
    exact: bool = True

    @property
    def is_real(self) -> bool:
        return self.array.dtype.kind == "f"

    @property
    def is_tame(self) -> bool:
        """Returns whether arithmetic with it gives the same result in every runtime."""
        return self.array.dtype != np.bool_ and bool(np.all(np.abs(self.array.astype(np.float64)) < 64))


@dataclass
class RandomGraph:
    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]
    results: list[Wire]  # the model's outputs
    wires: list[Wire]  # the outputs of all nodes

    def __str__(self) -> str:
        return onnx.printer.to_text(self.model)


def random_graph(seed: int) -> RandomGraph:
    """Returns a graph of 2 to 8 nodes of type f32 or f16, with known and unknown shapes.

    It depends only on the seed.
    """
    return _Growing(np.random.default_rng(seed)).grow()


class _Growing:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.half = self.chance(0.25)
        self.symbols = rng.choice([0.0, 0.5, 1.0])  # the share of extents that are symbolic
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.domains: set[str] = set()
        self.feeds: dict[str, np.ndarray] = {}
        self.given: dict[int, Wire] = {}  # by id(array): calls of the catalogue share arrays
        self.wires: list[Wire] = []
        self.names = 0

    def grow(self) -> RandomGraph:
        size = int(self.rng.integers(2, MAX_NODES + 1))
        self.add_operator()
        while len(self.nodes) < size:
            if self.room() >= 4 and self.chance(0.5):
                self.add_operator()
            else:
                self.add_standard()
        return self.finish()

    def finish(self) -> RandomGraph:
        """Every node is used; some outputs of nodes with several outputs are not."""
        read = {name for node in self.nodes for name in node.input}
        wires = {wire.name: wire for wire in self.wires}
        results = []
        for node in self.nodes:
            outputs = [wires[name] for name in node.output if name]
            chosen = [w for w in outputs if self.chance(0.3)]
            if not chosen and not any(w.name in read for w in outputs):
                chosen = [outputs[self.rng.integers(len(outputs))]]
            results += chosen
        inputs = [
            helper.make_tensor_value_info(name, single_node.DTYPES[array.dtype], self.written_shape(name, array))
            for name, array in self.feeds.items()
        ]
        outputs = [onnx.ValueInfoProto(name=wire.name) for wire in results]
        graph = helper.make_graph(self.nodes, "random", inputs, outputs, self.initializers)
        opsets = [helper.make_opsetid("", OPSET), *(helper.make_opsetid(d, 1) for d in sorted(self.domains))]
        return RandomGraph(
            helper.make_model(graph, opset_imports=opsets, ir_version=8), self.feeds, results, self.wires
        )

    def written_shape(self, name: str, array: np.ndarray) -> list[int | str]:
        return [f"{name}_{d}" if self.chance(self.symbols) else extent for d, extent in enumerate(array.shape)]

    # ---- what both kinds of nodes need --------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, items: Sequence[Any]) -> Any:
        return items[self.rng.integers(len(items))]

    def room(self) -> int:
        return MAX_NODES - len(self.nodes)

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def constant(self, values: object, dtype: type = np.int64) -> str:
        self.initializers.append(numpy_helper.from_array(np.array(values, dtype), self.name("constant")))
        return self.initializers[-1].name

    def standard(
        self, op_type: str, inputs: Sequence[Wire | str], array: np.ndarray, exact: bool = True, **attributes: object
    ) -> Wire:
        """Adds a standard node whose result is `array`."""
        exact = exact and all(isinstance(i, str) or i.exact for i in inputs)
        wire = Wire(self.name("t"), np.asarray(array), exact)
        names = [i if isinstance(i, str) else i.name for i in inputs]
        self.nodes.append(helper.make_node(op_type, names, [wire.name], wire.name + "_" + op_type, **attributes))
        self.wires.append(wire)
        return wire

    # ---- polyop's nodes ------------------------------------------------------------------------------------------

    def add_operator(self) -> None:
        """Adds a node of polyop. After the first node, prefers one that can read existing results."""
        node = self.pick(NODES)
        for _ in range(6):
            if not self.wires or any(kind["name"] in FREE for kind in operator_of(node)["inputs"]):
                break
            node = self.pick(NODES)
        operator = operator_of(node)
        kinds = operator["inputs"] + [operator["inputs"][-1]] * (len(node.inputs) - len(operator["inputs"]))
        own = [self.typed(a, kind["types"]) for a, kind in zip(node.inputs, kinds, strict=False)]
        outputs = len(node.outputs)
        if any(kind["optional"] for kind in kinds) and self.chance(0.5):
            own = [None if kind["optional"] and self.chance(0.5) else a for a, kind in zip(own, kinds, strict=False)]
        if operator["outputs"][outputs - 1]["optional"] and self.chance(0.5):
            outputs -= 1
        if not runs(node, own, outputs):  # an output or input that this call's attributes require
            own, outputs = (
                [self.typed(a, kind["types"]) for a, kind in zip(node.inputs, kinds, strict=False)],
                len(node.outputs),
            )
            if not runs(node, own, outputs):  # the operator has no half precision
                own = list(node.inputs)
        decides = any(dtype is not np.float32 for dtype, _ in node.outputs)
        wires = [
            None if array is None else self.reaching(array, kind["name"], operator["name"], decides)
            for array, kind in zip(own, kinds, strict=False)
        ]
        arrays = run_alone(node, [None if w is None else w.array for w in wires], outputs)
        exact = all(w is None or (w.exact and w.array.dtype != np.float16) for w in wires)
        outputs_ = [Wire(self.name("y"), array, exact or array.dtype.kind != "f") for array in arrays]
        domain, op_type = node.name.split("::")
        names = ["" if w is None else w.name for w in wires]
        while not names[-1]:
            names.pop()
        self.nodes.append(
            helper.make_node(
                op_type, names, [w.name for w in outputs_], self.name("node"), domain=domain, **node.attributes
            )
        )
        self.domains |= {domain} - {""}
        self.wires += outputs_

    def typed(self, array: np.ndarray | None, types: Sequence[str]) -> np.ndarray | None:
        if array is None or not self.half or array.dtype != np.float32 or "f16" not in types:
            return array
        return halves(array)

    def reaching(self, array: np.ndarray, name: str, operator: str, decides: bool) -> Wire:
        """Returns the wire for an input: an existing result where that is allowed, otherwise the call's own array."""
        if name in FREE and operator not in ILL_CONDITIONED and self.room() >= 4 and self.chance(0.8):
            fitting = [
                w
                for w in self.wires
                if w.array.dtype == array.dtype
                and w.array.size >= max(array.size, 1)
                and w.is_tame
                and (w.exact or not decides)
            ]
            if fitting:
                return self.shaped(self.pick(fitting), array.shape)
        wire = self.source(array)
        return self.detour(wire) if self.room() >= 3 and self.chance(0.3) else wire

    def source(self, array: np.ndarray) -> Wire:
        """Returns an input of the graph or a constant for the array; one per array."""
        if id(array) not in self.given:
            if self.chance(0.15):
                wire = Wire(self.name("constant"), array)
                self.initializers.append(numpy_helper.from_array(array, wire.name))
            else:
                wire = Wire(self.name("in"), array)
                self.feeds[wire.name] = array
            self.given[id(array)] = wire
        return self.given[id(array)]

    def shaped(self, wire: Wire, shape: tuple[int, ...]) -> Wire:
        """Returns the first elements of `wire` in this shape."""
        size = int(np.prod(shape))
        if wire.array.shape == shape:
            return wire
        if wire.array.size > size:
            flat = wire.array.reshape(-1)
            wire = self.standard("Reshape", [wire, self.constant([-1])], flat)
            wire = self.standard("Slice", [wire, self.constant([0]), self.constant([size])], flat[:size])
        return self.standard("Reshape", [wire, self.constant(list(shape))], wire.array.reshape(shape))

    def detour(self, wire: Wire) -> Wire:
        """Adds one or two nodes that do not change the value."""
        array = wire.array
        ways = ["Identity", "Reshape", "Unsqueeze"]
        ways += ["Transpose"] * (array.ndim > 1) + ["Neg"] * wire.is_real + ["Cast"] * (array.dtype == np.int64)
        match self.pick(ways):
            case "Identity":
                return self.standard("Identity", [wire], array)
            case "Reshape":
                flat = self.standard("Reshape", [wire, self.constant([-1])], array.reshape(-1))
                return self.standard("Reshape", [flat, self.constant(list(array.shape))], array)
            case "Unsqueeze":
                wider = self.standard("Unsqueeze", [wire, self.constant([0])], array[None])
                return self.standard("Squeeze", [wider, self.constant([0])], array)
            case "Transpose":
                order = list(range(array.ndim))[::-1]
                reversed_ = self.standard("Transpose", [wire], array.transpose(order), perm=order)
                return self.standard("Transpose", [reversed_], array, perm=order)
            case "Neg":
                return self.standard("Neg", [self.standard("Neg", [wire], -array)], array)
            case _:
                narrow = self.standard("Cast", [wire], array.astype(np.int32), to=TensorProto.INT32)
                return self.standard("Cast", [narrow], array, to=TensorProto.INT64)

    # ---- ONNX's nodes --------------------------------------------------------------------------------------------

    def add_standard(self) -> None:
        inputs = [wire for wire in self.given.values() if wire.name in self.feeds]
        wire = self.pick(inputs if inputs and self.chance(0.15) else self.wires[-4:])
        ways: list[Callable[[Wire], Wire]] = [self.identity, self.flattened, self.transposed]
        if wire.array.ndim and wire.array.dtype != np.bool_:
            ways.append(self.doubled)
        if wire.is_tame:
            ways += [self.of_a_real] * 4 if wire.is_real else [self.of_an_integer] * 4
            ways += [self.of_two] * 2
        self.pick(ways)(wire)

    def identity(self, wire: Wire) -> Wire:
        return self.standard("Identity", [wire], wire.array)

    def flattened(self, wire: Wire) -> Wire:
        return self.standard("Reshape", [wire, self.constant([-1])], wire.array.reshape(-1))

    def transposed(self, wire: Wire) -> Wire:
        order = list(range(wire.array.ndim))[::-1]
        return self.standard("Transpose", [wire], wire.array.transpose(order), perm=order)

    def doubled(self, wire: Wire) -> Wire:
        return self.standard("Concat", [wire, wire], np.concatenate([wire.array] * 2), axis=0)

    def of_a_real(self, wire: Wire) -> Wire:
        array, wide = wire.array, wire.array.astype(np.float32)
        match self.pick(["Neg", "Abs", "Relu", "Tanh", "Sigmoid", "Mul"]):
            case "Neg":
                return self.standard("Neg", [wire], -array)
            case "Abs":
                return self.standard("Abs", [wire], np.abs(array))
            case "Relu":
                return self.standard("Relu", [wire], np.maximum(array, 0))
            case "Tanh":
                return self.standard("Tanh", [wire], np.tanh(wide).astype(array.dtype), False)
            case "Sigmoid":
                return self.standard("Sigmoid", [wire], (1 / (1 + np.exp(-wide))).astype(array.dtype), False)
            case _:
                half = self.constant(0.5, array.dtype.type)
                return self.standard("Mul", [wire, half], array * array.dtype.type(0.5), False)

    def of_an_integer(self, wire: Wire) -> Wire:
        """Uses the integers as indices if they are valid, otherwise as numbers."""
        array, dtype = wire.array, wire.array.dtype.type
        if dtype not in (np.int64, np.int32):
            return self.standard("Cast", [wire], array.astype(np.int32), to=TensorProto.INT32)
        min_rows = int(array.max(initial=-1)) + 1
        pickable = [
            w for w in (*self.given.values(), *self.wires) if w.is_real and w.array.ndim and len(w.array) >= min_rows
        ]
        if array.size and array.min() >= 0 and pickable and self.chance(0.6):
            of = self.pick(pickable)
            return self.standard("Gather", [of, wire], of.array[array], axis=0)
        match self.pick(["Add", "Mul", "Real", "Other"]):
            case "Add":
                return self.standard("Add", [wire, self.constant(3, dtype)], array + dtype(3))
            case "Mul":
                return self.standard("Mul", [wire, self.constant(2, dtype)], array * dtype(2))
            case "Real":
                return self.standard("Cast", [wire], array.astype(np.float32), to=TensorProto.FLOAT)
            case _:
                other = np.int32 if dtype is np.int64 else np.int64
                return self.standard("Cast", [wire], array.astype(other), to=single_node.DTYPES[np.dtype(other)])

    def of_two(self, wire: Wire) -> Wire:
        """Combines the wire with one of the same shape and type, possibly itself."""
        same = [
            w
            for w in (*self.wires, *self.given.values())
            if w.array.dtype == wire.array.dtype and w.array.shape == wire.array.shape and w.is_tame
        ]
        other = self.pick(same)
        if wire.array.dtype not in (np.float32, np.float16, np.int64, np.int32):
            return self.identity(wire)
        if self.chance(0.5):
            return self.standard("Max", [wire, other], np.maximum(wire.array, other.array))
        return self.standard("Add", [wire, other], wire.array + other.array, not wire.is_real)


# ---- nodes alone ---------------------------------------------------------------------------------------------------

_HALVES: dict[int, tuple[np.ndarray, np.ndarray]] = {}


def halves(array: np.ndarray) -> np.ndarray:
    """Returns the array in f16. The same array gives the same object, because arrays are compared by identity."""
    return _HALVES.setdefault(id(array), (array, array.astype(np.float16)))[1]


def run_alone(node: Node, inputs: Sequence[np.ndarray | None], outputs: int) -> list[np.ndarray]:
    """Runs a model of this node alone in ONNX Runtime."""
    named = {f"i{i}": array for i, array in enumerate(inputs)}
    proto = single_node.model(node.name, named, [f"o{o}" for o in range(outputs)], node.attributes)
    return single_node.session(proto).run(None, {n: a for n, a in named.items() if a is not None})


def runs(node: Node, inputs: Sequence[np.ndarray | None], outputs: int) -> bool:
    """Returns whether ONNX Runtime accepts the call."""
    try:
        run_alone(node, inputs, outputs)
    except Exception:  # its exceptions have no common base class
        return False
    return True
