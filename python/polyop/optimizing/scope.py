# SPDX-License-Identifier: Apache-2.0
"""A graph of a model, with the values that its tensors had when the model ran."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper

from polyop.optimizing.graph import constant, is_standard, outer_values, subgraphs_of
from polyop.optimizing.running import Feeds, Runner
from polyop.optimizing.target import Target

# The maximum elements of tensors whose values are recorded: they may be shapes, sizes of levels, or axes.
_SMALL = 64
_MAX_FAILURES = 100  # runs for finding the tensors that cannot be read
_PREFIX = "polyop_shape_of:"


@dataclass
class _Seen:
    """The tensors of one run."""

    feeds: Feeds
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    numbers: dict[str, np.ndarray] = field(default_factory=dict)


class Scope:
    """A graph as a separate model: the file's graph, or a branch or body, with the values that it reads from
    outside."""

    def __init__(
        self,
        model: ir.Model,
        graph: ir.Graph,
        runner: Runner,
        feeds: list[Feeds],
        sizes_are_fixed: bool,
        target: Target = Target.ONNXRUNTIME,
    ) -> None:
        self.model, self.graph, self.runner, self.sizes_are_fixed = model, graph, runner, sizes_are_fixed
        self.target = target
        self.opset = model.opset_imports.get("", 0)
        self._seen = [_Seen(f) for f in feeds]
        self._look()

    # ---- For patterns ----

    def shape(self, value: ir.Value | None) -> tuple[int, ...] | None:
        """Returns the shape of the tensor in the first run, or None if it is unknown."""
        return _shape(value, self._seen[0])

    def shapes(self, *values: ir.Value) -> list[tuple[tuple[int, ...] | None, ...]]:
        """Returns the shapes of tensors in each run."""
        return [tuple(_shape(value, seen) for value in values) for seen in self._seen]

    def same_shape(self, a: ir.Value | None, b: ir.Value | None) -> bool:
        """Returns True if the shapes of two tensors are known, and equal in all runs."""
        return all(_shape(a, seen) is not None and _shape(a, seen) == _shape(b, seen) for seen in self._seen)

    def numbers(self, value: ir.Value | None) -> np.ndarray | None:
        """Returns the values of a small tensor in the first run, or None if they are unknown."""
        if value is None or value.name is None:
            return None
        array = constant(value)
        return self._seen[0].numbers.get(value.name) if array is None else array

    def fixed(self, value: ir.Value | None) -> np.ndarray | None:
        """Returns the values of a small tensor, or None if they may depend on the model's inputs."""
        array = self.numbers(value)
        if array is None or not self._is_derived(value):
            return None
        same = all(value.name in s.numbers and np.array_equal(s.numbers[value.name], array) for s in self._seen)
        return array if same or constant(value) is not None else None

    def _is_derived(self, value: ir.Value) -> bool:
        """Returns True if the value is computed from constants, and from sizes if these are fixed."""
        open_, seen = [value], set()
        while open_:
            value = open_.pop()
            if value in seen or constant(value) is not None:
                continue
            seen.add(value)
            node = value.producer()
            if is_standard(node, "Shape", "Size") and self.sizes_are_fixed:
                continue
            if node is None or is_standard(node, "Shape", "Size"):
                return False
            open_ += outer_values(node)
        return True

    # ---- For checks ----

    def arrays(self, values: Iterable[ir.Value]) -> list[Feeds]:
        """Returns the values of tensors, by name, in each of the runs."""
        return self._run(list(dict.fromkeys(v.name for v in values if v.name)))

    def children(self) -> Iterator[tuple[str, Scope | Exception]]:
        """Yields the path and scope of each subgraph of If and Loop nodes, or the error if it does not run alone."""
        for node in list(self.graph):
            if not is_standard(node, "If", "Loop"):
                continue
            for attribute in node.attributes.values():
                for graph in subgraphs_of(attribute):
                    where = f"{node.name or node.op_type}.{attribute.name}"
                    try:
                        yield where, self._child(node, graph)
                    except Exception as error:  # ONNX Runtime's own types are not public
                        yield where, error

    def _child(self, node: ir.Node, graph: ir.Graph) -> Scope:
        inside = {v for inner in graph for v in inner.outputs} | set(graph.inputs) | set(graph.initializers.values())
        captured = [v for inner in graph for v in outer_values(inner)] + list(graph.outputs)
        captured = [v for v in dict.fromkeys(captured) if v not in inside]
        carried = list(node.inputs[2:]) if node.op_type == "Loop" else []
        feeds = []
        for arrays in self.arrays([*captured, *(v for v in carried if v is not None)]):
            feed = {v.name: arrays[v.name] for v in captured}
            if node.op_type == "Loop":
                first = [np.array(0, np.int64), np.array(True), *(arrays[v.name] for v in carried)]
                feed |= {i.name: array for i, array in zip(graph.inputs, first, strict=True)}
            feeds.append(feed)
        return Scope(self.model, graph, self.runner, feeds, self.sizes_are_fixed, self.target)

    # ---- Running ----

    def _look(self) -> None:
        """Runs the model and records every tensor's shape, and the values of small ones."""
        for seen, sizes in zip(
            self._seen, self._readable(self._tensors(), lambda names: self._run([], names)), strict=True
        ):
            seen.shapes = {name: array.shape for name, array in seen.feeds.items()}
            seen.shapes |= {name.removeprefix(_PREFIX): tuple(array.tolist()) for name, array in sizes.items()}
        shapes = [seen.shapes for seen in self._seen]
        small = [name for name in shapes[0] if all(np.prod(s[name]) <= _SMALL for s in shapes)]
        for seen, numbers in zip(self._seen, self._readable(small, self._run), strict=True):
            seen.numbers = numbers

    def _readable(self, names: list[str], run: Callable[[list[str]], list[Feeds]]) -> list[Feeds]:
        """Returns what `run` returns for these tensors, without those for which it fails: sequences that shape
        inference did not find, and types that NumPy lacks. Raises its error if more than a few fail.
        """
        results: list[Feeds] = [{} for _ in self._seen]
        open_, failures = [names], 0
        while open_:
            some = open_.pop()
            try:
                for result, found in zip(results, run(some), strict=True):
                    result |= found
            except Exception:  # ONNX Runtime's error types are not public
                failures += 1
                if failures > _MAX_FAILURES or not some:
                    raise
                half = len(some) // 2
                open_ += [part for part in (some[:half], some[half:]) if part and len(part) < len(some)]
        return results

    def _tensors(self) -> list[str]:
        """Returns the names of the tensors that nodes produce, without sequences and other values without a shape."""
        try:
            inferred = onnx.shape_inference.infer_shapes(self._proto([], []))
            other = {
                i.name for i in inferred.graph.value_info if i.type.WhichOneof("value") not in ("tensor_type", None)
            }
        except Exception:  # inference fails for some models that run
            other = set()
        return [v.name for node in self.graph for v in node.outputs if v.name and v.name not in other]

    def _run(self, names: list[str], sizes_of: Sequence[str] = ()) -> list[Feeds]:
        """Returns tensors by name, and the shapes of others, in each of the runs."""
        fed, initial = self._seen[0].feeds, self.graph.initializers
        known = {n: initial[n].const_value.numpy() for n in names if n in initial and n not in fed}
        requested = [name for name in names if name not in fed and name not in known]
        results: list[Feeds] = [{} for _ in self._seen]
        if requested or sizes_of:
            results = self.runner.run(self._proto(requested, sizes_of), [s.feeds for s in self._seen], as_written=True)
        given = [{n: seen.feeds[n] for n in names if n in seen.feeds} for seen in self._seen]
        return [{**known, **fed, **result} for fed, result in zip(given, results, strict=True)]

    def _proto(self, outputs: Sequence[str], sizes_of: Sequence[str]) -> onnx.ModelProto:
        """Returns the graph as a model with these outputs and the shapes of these tensors."""
        graph, feeds = ir.serde.serialize_graph(self.graph), self._seen[0].feeds
        del graph.output[:]
        del graph.value_info[:]
        stated = {i.name for i in graph.input}
        graph.input.extend(input_like(name, array) for name, array in feeds.items() if name not in stated)
        if self.graph is not self.model.graph:
            for i in graph.input:
                i.CopyFrom(input_like(i.name, feeds[i.name]))
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
        for name in sizes_of:
            graph.node.append(helper.make_node("Shape", [name], [_PREFIX + name]))
            graph.output.append(onnx.ValueInfoProto(name=_PREFIX + name))
        return as_model(self.model, graph)


def _shape(value: ir.Value | None, seen: _Seen) -> tuple[int, ...] | None:
    if value is None or value.name is None:
        return None
    array = constant(value)
    return seen.shapes.get(value.name) if array is None else array.shape


def input_like(name: str, array: np.ndarray, length: int | None = None) -> onnx.ValueInfoProto:
    """Returns an input of this array's type and rank, and of this length if it is given."""
    shape = [length] if array.ndim == 1 else [None] * array.ndim
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)


def as_model(like: ir.Model, graph: onnx.GraphProto) -> onnx.ModelProto:
    """Returns a model of the graph, with the opsets and functions of `like`, and polyop's opset."""
    imports = {
        **like.opset_imports,
        **{f.domain: 1 for f in like.functions.values() if f.domain not in like.opset_imports},
    }
    for node in graph.node:
        imports.setdefault(node.domain, 1)
    opsets = [helper.make_opsetid(domain, version) for domain, version in imports.items()]
    result = helper.make_model(graph, opset_imports=opsets, ir_version=like.ir_version)
    result.functions.extend(ir.serde.serialize_function(f) for f in like.functions.values())
    return result
