"""Compares a match with the nodes that it replaces, on the model's own values and on others. Nothing is believed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper

from polyop.optimizing.errors import said
from polyop.optimizing.graph import cone, constant
from polyop.optimizing.matching import Builder, Match
from polyop.optimizing.running import Feeds, largest_difference, time_in_turns
from polyop.optimizing.scope import Scope, as_model, input_like

# Of results of magnitude 1. Sums run in another order, and weights are rounded elsewhere.
_TOLERANCE = {"float32": 1e-4, "float64": 1e-4, "float16": 1e-2}


@dataclass
class Verdict:
    why: str = ""  # it differs, or cannot run; "" if it computes the same
    difference: float = 0.0
    before: float | None = None  # seconds
    after: float | None = None


def check(match: Match, scope: Scope, arrays: list[Feeds], measure: bool) -> Verdict:
    """arrays: the values of the match's inputs and of what else its nodes read, in each of the scope's runs."""
    try:
        nodes, read = cone(match.outputs, match.inputs)
        before = _part(scope, match, [n for n in scope.graph if n in set(nodes)], read, match.outputs, arrays)
        builder = Builder(scope.opset)
        made = match.build(builder, match.inputs)
        for i, node in enumerate(builder.nodes):
            for j, value in enumerate(node.outputs):
                value.name = f"polyop:{i}.{j}"
        after = _part(scope, match, builder.nodes, [], made, arrays)
        sessions = [scope.runner.session(model, as_used=measure) for model in (before, after)]
        largest = 0.0
        for feeds in _all_feeds(match, arrays):
            want, got = (s.run(None, {i.name: feeds[i.name] for i in s.get_inputs()}) for s in sessions)
            for value, w, g in zip(match.outputs, want, got, strict=True):
                difference = largest_difference(w, g)
                largest = max(largest, difference)
                if difference > allowed(w):
                    return Verdict(f"its result '{value.name}' differs by {difference:.3g}", largest)
        verdict = Verdict("", largest)
        if measure:
            verdict.before, verdict.after = time_in_turns(sessions, arrays[0], seconds=0.2, least=3)
        return verdict
    except Exception as error:  # ONNX Runtime's own types are not public
        return Verdict(f"it could not be compared: {said(error)}")


def allowed(want: np.ndarray, tolerance: float | None = None) -> float:
    """The largest difference from these values that is rounding: in proportion to the largest of them, 0 for integers."""
    if want.dtype.kind != "f":
        return 0.0
    finite = want[np.isfinite(want)]
    scale = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
    return (_TOLERANCE.get(want.dtype.name, 1e-2) if tolerance is None else tolerance) * scale


def needed(match: Match) -> list[ir.Value]:
    """The tensors whose values a comparison needs."""
    try:
        _, read = cone(match.outputs, match.inputs)
    except ValueError:
        return []
    return [*match.inputs, *(v for v in read if constant(v) is None)]


def _part(
    scope: Scope, match: Match, nodes: list[ir.Node], read: list[ir.Value], outputs: list[ir.Value], arrays: list[Feeds]
) -> onnx.ModelProto:
    """Nodes as a model."""
    values = list(dict.fromkeys([*match.inputs, *read]))
    inputs = [v for v in values if constant(v) is None]
    constants = [v for v in values if constant(v) is not None]
    protos = [ir.serde.serialize_node(node) for node in nodes]
    tensors = []
    for value in constants:
        if value.is_initializer():
            tensors.append(ir.serde.serialize_tensor(value.const_value))
            tensors[-1].name = value.name
        else:
            protos.insert(0, ir.serde.serialize_node(value.producer()))
    if not outputs[0].name:
        raise ValueError("it has an output without a name")
    graph = helper.make_graph(
        protos, "part", [_input(v.name, arrays) for v in inputs],
        [onnx.ValueInfoProto(name=v.name) for v in outputs], tensors,
    )  # fmt: skip
    return as_model(scope.model, graph)


def _input(name: str, arrays: list[Feeds]) -> onnx.ValueInfoProto:
    """Inference for Resize asks how many sizes there are: what has one length in all runs has it here."""
    lengths = {len(of_run[name]) for of_run in arrays if of_run[name].ndim == 1}
    return input_like(name, arrays[0][name], lengths.pop() if len(lengths) == 1 else None)


def _all_feeds(match: Match, arrays: list[Feeds]) -> Iterator[Feeds]:
    """The model's own values, and values made from them: by the pattern, and by drawing and mixing."""
    yield from arrays
    rng = np.random.default_rng(0)
    for of_run in arrays:
        own = [of_run[v.name] if constant(v) is None else constant(v) for v in match.inputs]
        for vary in [match.feeds] if match.feeds else [_drawn, _mixed]:
            yield {**of_run, **{v.name: a for v, a in zip(match.inputs, vary(rng, own), strict=True)}}


def _drawn(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Real numbers as wide as the model's own; integers stay, for they may be sizes and places."""

    def draw(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind != "f" or not array.size or not np.isfinite(array).all():
            return array
        spread = float(array.astype(np.float64).std()) or 1.0
        return (array.mean(dtype=np.float64) + spread * rng.standard_normal(array.shape)).astype(array.dtype)

    return [draw(array) for array in arrays]


def _mixed(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The model's own real numbers in another order, some of them far out."""

    def mix(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind != "f":
            return array
        mixed = rng.permutation(array.reshape(-1)).reshape(array.shape)
        return np.where(rng.random(array.shape) < 0.05, mixed * 4, mixed).astype(array.dtype)

    return [mix(array) for array in arrays]
