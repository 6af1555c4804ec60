# SPDX-License-Identifier: Apache-2.0
"""Verifies every replacement: compares a match with the nodes that it replaces, on the model's own values and on
others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
from onnx import helper

from polyop._onnx.comparing import compare, with_rounding
from polyop.optimizing.graph import cone, constant
from polyop.optimizing.matching import Builder, Match
from polyop.optimizing.running import Feeds, runtime_error, time_interleaved
from polyop.optimizing.scope import Scope, as_model, input_like


@dataclass
class Verdict:
    why: str = ""  # the reason why it differs or cannot run, in a few words; "" if it computes the same
    details: str = ""  # the rest of the reason
    difference: float | None = None
    change: float | None = None  # the difference from ONNX Runtime's result, if that is not the standard's
    before: float | None = None  # seconds
    after: float | None = None


def check(match: Match, scope: Scope, arrays: list[Feeds], measure: bool) -> Verdict:
    """Compares a match with the nodes that it replaces, or with the reference kernels if ONNX Runtime's result of these
    nodes is not the standard's; times both if `measure`.

    arrays: the values of the match's inputs and of the other tensors that its nodes read, in each of the scope's runs.
    """
    try:
        nodes, read = cone(match.outputs, match.inputs)
        before = _part(scope, match, [n for n in scope.graph if n in set(nodes)], read, match.outputs, arrays)
        for value in match.inputs:  # a file need not state types, and patterns take unknown ones for f32
            if value.dtype is None and arrays and _is_half(arrays[0].get(value.name)):
                value.dtype = ir.DataType.FLOAT16
        builder = Builder(scope.opset)
        result = match.build(builder, match.inputs)
        for i, node in enumerate(builder.nodes):
            for j, value in enumerate(node.outputs):
                value.name = f"polyop:{i}.{j}"
        after = _part(scope, match, builder.nodes, [], result, arrays)
        sessions = [scope.runner.session(model, as_used=measure) for model in (before, after)]
        trusted = scope.runner.session(after, reference=True) if match.is_fix else sessions[0]
        for node in builder.nodes:  # else they would count as readers of the graph's values
            for i in range(len(node.inputs)):
                node.replace_input_with(i, None)
        largest = change = 0.0
        for feeds in _all_feeds(match, arrays):
            expected, got = (_run(session, feeds) for session in (trusted, sessions[1]))
            noisy: list[np.ndarray] | None = None  # computed if a difference may be due to rounding
            for i, value in enumerate(match.outputs):
                difference = compare(expected[i], got[i], match.tolerance, is_rounded=match.is_rounded)
                if difference.why and not match.is_rounded:
                    noisy = noisy or _run(trusted, with_rounding(feeds))
                    difference = compare(expected[i], got[i], match.tolerance, noisy=noisy[i])
                largest = max(largest, difference.largest)
                if difference.why:
                    why = f"its results differ by {difference.excess:.3g}"
                    return Verdict(why, f"output '{value.name}' {difference.why}", largest)
            if match.is_fix:
                pairs = zip(_run(sessions[0], feeds), expected, strict=True)
                change = max([change, *(compare(*pair).largest for pair in pairs)])
        verdict = Verdict(difference=largest, change=change if match.is_fix else None)
        if measure:
            verdict.before, verdict.after = time_interleaved(sessions, arrays[0], seconds=0.2, min_runs=3)
        return verdict
    except Exception as error:  # ONNX Runtime's error types are not public
        return Verdict("the comparison failed", runtime_error(error))


def _is_half(array: np.ndarray | None) -> bool:
    return array is not None and array.dtype == np.float16


def _run(session: ort.InferenceSession, feeds: Feeds) -> list[np.ndarray]:
    return session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})


def needed(match: Match) -> list[ir.Value]:
    """Returns the tensors whose values a comparison needs."""
    try:
        _, read = cone(match.outputs, match.inputs)
    except Exception:  # `check` reports it
        return []
    return [*match.inputs, *(v for v in read if constant(v) is None)]


def _part(
    scope: Scope, match: Match, nodes: list[ir.Node], read: list[ir.Value], outputs: list[ir.Value], arrays: list[Feeds]
) -> onnx.ModelProto:
    """Returns a model of these nodes."""
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
        raise ValueError("an output has no name")
    graph = helper.make_graph(
        protos,
        "part",
        [_input(v.name, arrays) for v in inputs],
        [onnx.ValueInfoProto(name=v.name) for v in outputs],
        tensors,
    )
    return as_model(scope.model, graph)


def _input(name: str, arrays: list[Feeds]) -> onnx.ValueInfoProto:
    """Returns an input.

    A list has a fixed length if that is the same in all runs: shape inference of Resize needs it.
    """
    lengths = {len(of_run[name]) for of_run in arrays if of_run[name].ndim == 1}
    return input_like(name, arrays[0][name], lengths.pop() if len(lengths) == 1 else None)


def _all_feeds(match: Match, arrays: list[Feeds]) -> Iterator[Feeds]:
    """Yields the model's own values, and values derived from them: by the pattern, at random, and by permutation."""
    yield from arrays
    rng = np.random.default_rng(0)
    for of_run in arrays:
        own = [of_run[v.name] if constant(v) is None else constant(v) for v in match.inputs]
        for vary in [match.feeds] if match.feeds else [_drawn, _mixed]:
            yield {**of_run, **{v.name: a for v, a in zip(match.inputs, vary(rng, own), strict=True)}}


def _drawn(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Returns random real numbers in the range of the model's own. Keeps integers, which may be sizes and indices."""

    def draw(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind != "f" or not array.size or not np.isfinite(array).all():
            return array
        spread = float(array.astype(np.float64).std()) or 1.0
        return (array.mean(dtype=np.float64) + spread * rng.standard_normal(array.shape)).astype(array.dtype)

    return [draw(array) for array in arrays]


def _mixed(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Returns the model's own real numbers in another order, some of them much larger."""

    def mix(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind != "f":
            return array
        mixed = rng.permutation(array.reshape(-1)).reshape(array.shape)
        return np.where(rng.random(array.shape) < 0.05, mixed * 4, mixed).astype(array.dtype)

    return [mix(array) for array in arrays]
