# SPDX-License-Identifier: Apache-2.0
"""Calls the patterns of polyop's library (core/pattern.h), which also find them in a session of ONNX Runtime."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir

from polyop._base.libraries import get_onnxruntime_op_path
from polyop.optimizing.graph import constant, is_standard, outer_values, subgraphs_of
from polyop.optimizing.matching import Builder, Match, name_of
from polyop.optimizing.scope import Scope

_MAX_ELEMENTS = 1 << 22  # of constants: indices and positions belong to a pattern, large weights do not
_PLAIN = {
    ir.AttributeType.INT,
    ir.AttributeType.FLOAT,
    ir.AttributeType.STRING,
    ir.AttributeType.INTS,
    ir.AttributeType.FLOATS,
}
_TYPES = {
    ir.DataType.FLOAT: "f32", ir.DataType.FLOAT16: "f16", ir.DataType.BFLOAT16: "bf16", ir.DataType.DOUBLE: "f64",
    ir.DataType.INT8: "i8", ir.DataType.UINT8: "u8", ir.DataType.INT16: "i16", ir.DataType.INT32: "i32",
    ir.DataType.INT64: "i64", ir.DataType.BOOL: "bool",
}  # fmt: skip


@dataclass(frozen=True)
class Found:
    """What a pattern found: `node`, a node of polyop with these attributes, computes the outputs from the inputs; or it
    and others, as `parameters` say."""

    at: ir.Node
    inputs: list[ir.Value]
    outputs: list[ir.Value]
    node: str
    attributes: dict[str, Any]
    parameters: dict[str, Any]
    work: float
    min_work: float
    refused: str

    def match(
        self,
        build: Callable[[Builder, list[ir.Value]], list[ir.Value]] | None = None,
        feeds: Callable[[np.random.Generator, list[np.ndarray]], list[np.ndarray]] | None = None,
    ) -> Match:
        """Returns the match. By default one node replaces it."""

        def one_node(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
            return b.node(self.node, inputs, self.attributes, len(self.outputs))

        outputs = self.outputs or list(self.at.outputs)
        return Match(
            name_of(self.at), self.inputs, outputs, build or one_node, self.work, self.refused, feeds=feeds,
            min_work=self.min_work,
        )  # fmt: skip


def find_pattern(scope: Scope, name: str) -> Iterator[Found]:
    """Yields what the library's pattern of this name finds in the graph."""
    nodes, values, request, _elements = _request(scope)
    reply = json.loads(_library().polyop_find_pattern(name.encode(), json.dumps(request, allow_nan=False).encode()))
    if "error" in reply:
        raise ValueError(reply["error"])
    for match in reply["matches"]:
        inputs, outputs = ([values[i] for i in match.pop(key)] for key in ("inputs", "outputs"))
        yield Found(nodes[match.pop("at")], inputs, outputs, **match)


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(get_onnxruntime_op_path())
    library.polyop_find_pattern.restype = ctypes.c_char_p
    return library


def _request(scope: Scope) -> tuple[list[ir.Node], list[ir.Value], dict[str, Any], list[np.ndarray]]:
    """Returns the graph's nodes and values, the graph as adapters/patterns.h describes it, and the arrays to which it
    refers. Values that do not depend on the model's inputs are constants."""
    index: dict[ir.Value, int] = {}
    fixed: set[ir.Value] = set()

    def indices(values: Iterable[ir.Value | None]) -> list[int]:
        return [index.setdefault(v, len(index)) if v is not None else -1 for v in values]

    def written(node: ir.Node) -> dict[str, Any]:
        read = [v for v in node.inputs if v is not None]
        captured = [v for v in dict.fromkeys(outer_values(node)) if v not in read]
        fixed.update(v for v in (*read, *captured) if constant(v) is not None)
        is_size = is_standard(node, "Shape", "Size")
        if (scope.sizes_are_fixed if is_size else fixed.issuperset((*read, *captured))) and not _is_random(node):
            fixed.update(node.outputs)
        return {
            "domain": node.domain,
            "type": node.op_type,
            "name": node.name or "",
            "attributes": {n: v for n, a in node.attributes.items() if (v := _plain(a)) is not None},
            "inputs": indices(node.inputs),
            "outputs": indices(node.outputs),
            "captured": indices(captured),
            "subgraphs": [subgraph(g) for a in node.attributes.values() for g in subgraphs_of(a)],
        }

    def subgraph(graph: ir.Graph) -> dict[str, Any]:
        nodes = [written(node) for node in graph]
        return {"inputs": indices(graph.inputs), "outputs": indices(graph.outputs), "nodes": nodes}

    nodes = list(scope.graph)
    everything = [written(node) for node in nodes]
    values = list(index)
    elements: list[np.ndarray] = []
    request = {
        "opset": scope.opset,
        "sizes_are_fixed": scope.sizes_are_fixed,
        "nodes": everything,
        "values": [_value(scope, v, v in fixed, elements) for v in values],
    }
    return nodes, values, request, elements


def _plain(attribute: ir.Attr) -> Any:
    """Returns the value of an attribute that patterns can read: numbers, texts, and lists of numbers."""
    if attribute.is_ref():
        return None
    value = attribute.value
    if attribute.type == ir.AttributeType.TENSOR:
        value = value.numpy().item() if value.size == 1 and value.dtype in _TYPES else None
        value = value + 0 if value is not None else None  # a number, also for a truth value
    elif attribute.type not in _PLAIN:
        return None
    return value if value is not None and (isinstance(value, str) or np.isfinite(value).all()) else None


def _is_random(node: ir.Node) -> bool:
    return node.op_type.startswith("Random") or node.op_type in ("Bernoulli", "Multinomial", "Dropout")


def _value(scope: Scope, value: ir.Value, is_fixed: bool, elements: list[np.ndarray]) -> dict[str, Any]:
    array = constant(value) if is_fixed else None
    is_constant = array is not None
    if array is None and is_fixed:
        array = scope.fixed(value)
    if array is not None and (array.size > _MAX_ELEMENTS or array.dtype.kind not in "biuf"):
        array = None
    shape = scope.shape(value)
    dtype = value.dtype
    if array is not None:
        dtype = ir.DataType.from_numpy(array.dtype)
        elements.append(array := np.ascontiguousarray(array))
    return {
        "name": value.name or "",
        "type": _TYPES.get(dtype),
        "shape": list(shape) if shape is not None else None,
        "constant": is_constant,
        "output": value.is_graph_output(),
        "data": array.ctypes.data if array is not None else None,
    }
