# SPDX-License-Identifier: Apache-2.0
"""torch.repeat_interleave by a tensor, as polyop's translation writes it: marks at the end of each index, and their
running sum, which is the index. One node writes the indices.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import filled_with, is_standard, producer
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

NAME = "repeated indices"
ORDER = 84  # before the patterns of single nodes
TARGETS = (Target.ONNXRUNTIME,)


def find(scope: Scope) -> Iterator[Match]:
    yield from matches_of((n for n in scope.graph if is_standard(n, "CumSum")), lambda node: _match(scope, node))


def _is_running_sum(scope: Scope, node: ir.Node | None) -> bool:
    axis = scope.fixed(node.inputs[1]) if node is not None else None
    if node is None or axis is None or axis.item() not in (0, -1):
        return False
    return not any(node.attributes.get_int(name, 0) for name in ("exclusive", "reverse"))


def _match(scope: Scope, node: ir.Node) -> Match | None:
    kept = producer(node.inputs[0], "Slice")
    marks = producer(kept.inputs[0], "ScatterElements") if kept is not None else None
    if marks is None or marks.attributes.get_string("reduction", "none") != "add":
        return None
    if filled_with(marks.inputs[0]) != 0 or filled_with(marks.inputs[2]) != 1:
        return None
    ends = producer(marks.inputs[1], "CumSum")
    if ends is None or not _is_running_sum(scope, ends) or not _is_running_sum(scope, node):
        return None
    repeats, shape = ends.inputs[0], scope.shape(ends.inputs[0])
    if repeats is None or repeats.dtype is not ir.DataType.INT64 or shape is None or len(shape) != 1:
        return None

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        # Exact, because memory cannot hold 2^53 indices. ONNX Runtime adds integers five times as slowly.
        total = b("ReduceSum", b("Cast", inputs[0], to=ir.DataType.DOUBLE.value), keepdims=0)
        return [b("polyop::RepeatIndices", inputs[0], b("Cast", total, to=ir.DataType.INT64.value))]

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [rng.permuted(arrays[0])]

    match = Match(name_of(node), [repeats], [node.outputs[0]], build, float(shape[0]))
    match.feeds = feeds
    return match
