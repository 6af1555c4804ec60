# SPDX-License-Identifier: Apache-2.0
"""Recognizes a loop that repeatedly picks the best remaining box (best_box_nms.py): its candidates, its end and its
outputs."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import (
    MOVEMENT,
    constant,
    filled_with,
    is_read,
    is_standard,
    outer_values,
    producer,
    scalar,
    trail,
)
from polyop.optimizing.patterns._loops import State, body_of, of_steps, scanned, states, with_inner
from polyop.optimizing.patterns._suppression import SWAPPED, compared_lengths, is_length, number_itself
from polyop.optimizing.scope import Scope

ALL = -1  # the number of steps is the number of boxes
BELOW_SCORES = -1000.0  # lower values mark removed boxes, not scores
# Operators that pass on scores: all of them, some, or the best.
_SCORES = (*MOVEMENT, "Cast", "GatherElements", "ReduceMax", "ScatterElements", "ScatterND", "TopK", "Where")
_POSITIVE = ("Exp", "HardSigmoid", "Relu", "Sigmoid", "Softmax", "Softplus")


@dataclass
class Loop:
    node: ir.Node
    pick: ir.Node  # finds the best remaining box
    left: State  # the scores or the mask of the remaining boxes
    scores: ir.Value
    count: int  # of boxes
    lowest: float  # the score of removed boxes
    ends: bool  # when no box remains
    steps: int  # the maximum number of steps, or ALL


@dataclass
class Output:
    """An output of the loop.

    kind: "indices", "scores", "mask" or "count".
    length: its fixed length, padded with `fill`; None if it has an element per kept box.
    """

    value: ir.Value
    kind: str
    length: int | None = None
    fill: float = 0


@dataclass
class MinScore:
    """The score that boxes must exceed. is_compared: True if the loop itself skips other boxes."""

    score: float
    is_compared: bool


# ---- The loop ----


def find_loop(scope: Scope, loop: ir.Node) -> Loop | None:
    for pick in body_of(loop):
        if is_standard(pick, "ArgMax") or (is_standard(pick, "TopK") and scalar(pick.inputs[1]) == 1):
            for left in states(loop):
                if (ranked := _ranked(pick, left, body_of(loop))) is None:
                    continue
                scores, lowest = ranked
                shape = scope.shape(scores)
                if shape is None or len(shape) != 1 or shape[0] < 2 or lowest is None:
                    continue
                ends = is_standard(loop, "Loop") and _reads(body_of(loop), body_of(loop).outputs[0], left.before)
                steps = _steps(scope, loop, shape[0])
                return Loop(loop, pick, left, scores, shape[0], lowest, ends, steps) if steps is not None else None
    return None


def _ranked(pick: ir.Node, left: State, body: ir.Graph) -> tuple[ir.Value, float | None] | None:
    """Returns the scores that the best one is picked from, and the value that removed boxes have, or None."""
    ranked = trail(pick.inputs[0])[-1]
    if ranked is left.before:
        return left.first, _written(left.after)
    chosen = producer(ranked, "Where")
    if chosen is None or _mask_itself(chosen.inputs[0]) is not left.before:
        return None
    for scores, other in (chosen.inputs[1:], reversed(chosen.inputs[1:])):
        if (lowest := filled_with(other)) is not None:
            return next((v for v in trail(scores) if v.graph is not body), scores), lowest
    return None


def _mask_itself(value: ir.Value) -> ir.Value:
    """Returns the mask without negations: the comparison of results decides which polarity is correct."""
    while (node := producer(value := number_itself(value), "Not")) is not None:
        value = node.inputs[0]
    return value


def _written(after: ir.Value) -> float | None:
    """Returns the only number that a step writes into the scores; 0 if it multiplies them by a mask. None if there is
    no such number.
    """
    numbers: set[float | None] = set()
    open_ = [after]
    while open_:
        node = producer(open_.pop(), *_SCORES, "Mul")
        if node is None:
            continue
        if node.op_type in ("ScatterElements", "ScatterND"):
            numbers.add(filled_with(node.inputs[2]))
        elif node.op_type == "Mul":
            numbers.add(0.0)
        for value in _data(node):
            if node.op_type == "Where" and (number := filled_with(value)) is not None:
                numbers.add(number)
            else:
                open_.append(value)
    return numbers.pop() if len(numbers) == 1 else None


def _steps(scope: Scope, loop: ir.Node, count: int) -> int | None:
    """Returns the maximum number of steps, each of which removes a box; None if it is unknown."""
    if is_standard(loop, "Scan"):
        slices, axis = scanned(loop)
        shape = scope.shape(slices)
        if shape is None:
            return None
        if scope.sizes_are_fixed or constant(slices) is not None:
            return shape[axis]
        return ALL if shape[axis] == count else None
    limits, given = compared_lengths(loop), loop.inputs[0]
    if given is not None and scalar(given) != 2**63 - 1 and not is_length(scope, given, count):
        number = scope.fixed(given)
        if number is None:
            return None
        limits.add(int(number))
    return min(limits, default=ALL)


def _reads(body: ir.Graph, value: ir.Value, source: ir.Value) -> bool:
    """Returns True if a value of the body depends on `source`."""
    open_, seen = [value], set()
    while open_:
        value = open_.pop()
        if value is source:
            return True
        node = value.producer()
        if value not in seen and node is not None and node.graph is body:
            open_ += outer_values(node)
        seen.add(value)
    return False


def removes_the_best(found: Loop) -> bool:
    """Returns True if a step removes the picked box by its index, not because it overlaps with itself."""
    body = body_of(found.node)
    picked = found.pick.outputs[-1]
    compared = [n for n in body if is_standard(n, "Equal", "OneHot", "ScatterElements", "ScatterND")]
    picks = [n for n in compared if any(_index_itself(v) is picked for v in n.inputs if v is not None)]
    return any(_reads(body, found.left.after, n.outputs[0]) for n in picks)


def _index_itself(value: ir.Value) -> ir.Value:
    """Returns the index without the sums and choices by which exporters make negative indices positive."""
    value = number_itself(value)
    while (node := producer(value, "Concat", "Expand", "Where")) is not None:
        value = number_itself(node.inputs[-1 if node.op_type == "Where" else 0])
    return value


def min_of(found: Loop, nodes: list[ir.Node]) -> MinScore | None:
    """Returns the score that boxes must exceed: the only number that scores are compared with, or else the number that
    the loop writes. None if it is unknown.
    """
    numbers = set()
    for node in with_inner(nodes):
        if not is_standard(node, *SWAPPED):
            continue
        value, other, how = *node.inputs, node.op_type
        if filled_with(other) is None:
            value, other, how = other, value, SWAPPED[how]
        number = filled_with(other)
        if number is not None and _is_score(value, found):
            is_enough = how in ("GreaterOrEqual", "Less")  # Less is the negated comparison
            numbers.add(float(np.nextafter(np.float32(number), np.float32(-inf))) if is_enough else number)
    if len(numbers) > 1:
        return None
    return MinScore(numbers.pop(), True) if numbers else MinScore(found.lowest, False)


def _is_score(value: ir.Value, found: Loop) -> bool:
    open_, seen = [value], set()
    while open_:
        value = open_.pop()
        if value is found.scores or (value is found.left.before and found.left.first is found.scores):
            return True
        node = producer(value, *_SCORES, "Mul")
        if value not in seen and node is not None and value is node.outputs[0]:
            open_ += _data(node)
        seen.add(value)
    return False


def _data(node: ir.Node) -> list[ir.Value]:
    """Returns the data inputs of a node, without indices and conditions."""
    return list(
        node.inputs[1:] if node.op_type == "Where" else node.inputs if node.op_type == "Mul" else node.inputs[:1]
    )


def is_below_all_scores(lowest: float, scores: ir.Value) -> bool:
    """Returns True if the number is below any score."""
    if -inf < lowest <= BELOW_SCORES:
        return True
    while (node := producer(scores, *_SCORES)) is not None and node.op_type != "Where":
        scores = node.inputs[0]
    return -inf < lowest <= 0 and producer(scores, *_POSITIVE) is not None


# ---- The outputs of the loop ----


def outputs_of(scope: Scope, found: Loop) -> list[Output] | None:
    """Returns the outputs that other nodes read; None if one is not recognized."""
    result = [_of_state(scope, found, s) for s in states(found.node) if is_read(s.last)]
    result += [_of_each_step(scope, found, *s) for s in of_steps(found.node) if is_read(s[1])]
    return result if result and None not in result else None


def _of_state(scope: Scope, found: Loop, state: State) -> Output | None:
    if (grown := producer(state.after, "SequenceInsert")) is not None:
        readers = [node for node, _ in state.last.uses()]
        if len(readers) != 1 or not is_standard(readers[0], "ConcatFromSequence"):
            return None
        return _of_each_step(scope, found, grown.inputs[1], readers[0].outputs[0])
    first, shape = filled_with(state.first), scope.shape(state.last)
    added = producer(number_itself(state.after), "Add")
    if first == 0 and added is not None and {1} == {scalar(v) for v in added.inputs} - {None}:
        return Output(state.last, "count") if shape == () else None
    if first == 0 and shape == (found.count,) and _is_mask(state):
        return Output(state.last, "mask")
    written = producer(number_itself(state.after), "ScatterElements", "ScatterND", "Where")
    if written is None or first is None:
        return None
    before, new = (2, 1) if written.op_type == "Where" else (0, 2)
    kind = _kind(found, written.inputs[new]) if number_itself(written.inputs[before]) is state.before else None
    length = _length(scope, found, state.last, state.first)
    if kind is None or length is None:
        return None
    return Output(state.last, kind[0], length, first if found.ends else kind[1])


def _is_mask(state: State) -> bool:
    return ir.DataType.BOOL in (state.first.dtype, state.before.dtype, state.last.dtype)


def _of_each_step(scope: Scope, found: Loop, inner: ir.Value, outer: ir.Value) -> Output | None:
    kind = _kind(found, inner)
    if kind is None:
        return None
    if found.ends:
        return Output(outer, kind[0])
    length = _length(scope, found, outer)
    return Output(outer, kind[0], length, kind[1]) if length is not None else None


def _kind(found: Loop, value: ir.Value) -> tuple[str, float] | None:
    """Returns which property of the best box a value is, and its value when no box remains."""
    fill: float | None = None
    while (node := value.producer()) is not None:
        if node is found.pick:
            kind, otherwise = ("indices", 0) if value is node.outputs[-1] else ("scores", found.lowest)
            return kind, otherwise if fill is None else fill
        chosen = [v for v in node.inputs[1:] if filled_with(v) is None] if is_standard(node, "Where") else []
        if len(chosen) == 1:
            fill = next(filled_with(v) for v in node.inputs[1:] if v is not chosen[0])
            value = chosen[0]
        elif is_standard(node, "Gather", "GatherElements", "GatherND", "ReduceMax"):
            return ("scores", found.lowest if fill is None else fill) if _is_score(value, found) else None
        elif (number := number_itself(value)) is not value:
            value = number
        else:
            return None
    return None


def _length(scope: Scope, found: Loop, value: ir.Value, first: ir.Value | None = None) -> int | None:
    """Returns the length of a tensor with one element per step, or of `first`, which the loop starts with."""
    shape = scope.shape(value)
    if not shape or any(extent != 1 for extent in shape[1:]):
        return None
    if scope.sizes_are_fixed or (first is not None and _has_constant_size(first)):
        return shape[0]
    if first is not None:
        return ALL if shape[0] == found.count else None
    return found.steps if found.steps in (ALL, shape[0]) else None


def _has_constant_size(filled: ir.Value) -> bool:
    node = producer(filled, "ConstantOfShape", "Expand")
    return constant(filled if node is None else node.inputs[-1]) is not None
