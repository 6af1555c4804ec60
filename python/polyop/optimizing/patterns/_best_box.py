"""A loop that looks for the best box of what is left (best_box_nms.py), as it stands in a graph: what it picks from, when it ends,
and what is read of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import MOVEMENT, constant, is_standard, made_by, outer_values, scalar, trail
from polyop.optimizing.patterns._loops import State, body_of, of_steps, scanned, states, with_inner
from polyop.optimizing.patterns._suppression import TURNED, compared_lengths, filled_with, is_length, number_itself
from polyop.optimizing.scope import Scope

ALL = -1  # as many as there are boxes
BELOW_SCORES = -1000.0  # what is as low is no box's score
# What hands scores on: all of them, some, or the best.
_SCORES = (*MOVEMENT, "Cast", "GatherElements", "ReduceMax", "ScatterElements", "ScatterND", "TopK", "Where")
_POSITIVE = ("Exp", "HardSigmoid", "Relu", "Sigmoid", "Softmax", "Softplus")


@dataclass
class Loop:
    node: ir.Node
    pick: ir.Node  # finds the best of what is left
    left: State  # the scores of what is left, or a mask of it
    scores: ir.Value
    count: int  # of boxes
    lowest: float  # the score of what is not left
    ends: bool  # once nothing is left
    steps: int  # the most of them, or ALL


@dataclass
class Output:
    """kind: "places", "scores", "mask" or "count". length: None, where it is as long as what is kept; behind that it has
    `fill`."""

    value: ir.Value
    kind: str
    length: int | None = None
    fill: float = 0


@dataclass
class Least:
    """Scores have to be above it. is_compared: for the loop does not look at what is not."""

    score: float
    is_compared: bool


# ---- The loop ----


def found_in(scope: Scope, loop: ir.Node) -> Loop | None:
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
    """The scores of which it is the best, and what the others are set to."""
    ranked = trail(pick.inputs[0])[-1]
    if ranked is left.before:
        return left.first, _written(left.after)
    chosen = made_by(ranked, "Where")
    if chosen is None or _mask_itself(chosen.inputs[0]) is not left.before:
        return None
    for scores, other in (chosen.inputs[1:], reversed(chosen.inputs[1:])):
        if (lowest := filled_with(other)) is not None:
            return next((v for v in trail(scores) if v.graph is not body), scores), lowest
    return None


def _mask_itself(value: ir.Value) -> ir.Value:
    """Without what turns it around: which of the two is meant is left to the comparison."""
    while (node := made_by(value := number_itself(value), "Not")) is not None:
        value = node.inputs[0]
    return value


def _written(after: ir.Value) -> float | None:
    """The one number that is written into the scores in a step; 0 where they are multiplied by a mask."""
    numbers: set[float | None] = set()
    open_ = [after]
    while open_:
        node = made_by(open_.pop(), *_SCORES, "Mul")
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
    """The most of them; each takes out a box. None if it cannot be told."""
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


def _reads(body: ir.Graph, value: ir.Value, wanted: ir.Value) -> bool:
    """Whether a value of the body is computed of another."""
    open_, seen = [value], set()
    while open_:
        value = open_.pop()
        if value is wanted:
            return True
        node = value.producer()
        if value not in seen and node is not None and node.graph is body:
            open_ += outer_values(node)
        seen.add(value)
    return False


def takes_out_the_best(found: Loop) -> bool:
    """Whether a step takes out the box that it has picked by its place, and not as it overlaps with itself."""
    body = body_of(found.node)
    places = found.pick.outputs[-1]
    compared = [n for n in body if is_standard(n, "Equal", "OneHot", "ScatterElements", "ScatterND")]
    picks = [n for n in compared if any(_index_itself(v) is places for v in n.inputs if v is not None)]
    return any(_reads(body, found.left.after, n.outputs[0]) for n in picks)


def _index_itself(value: ir.Value) -> ir.Value:
    """Without what exporters put around an index: sums and choices that make a negative one positive."""
    value = number_itself(value)
    while (node := made_by(value, "Concat", "Expand", "Where")) is not None:
        value = number_itself(node.inputs[-1 if node.op_type == "Where" else 0])
    return value


def least_of(found: Loop, nodes: list[ir.Node]) -> Least | None:
    """By the one number that scores are compared with; by what the loop writes if there is none."""
    numbers = set()
    for node in with_inner(nodes):
        if not is_standard(node, *TURNED):
            continue
        value, other, how = *node.inputs, node.op_type
        if filled_with(other) is None:
            value, other, how = other, value, TURNED[how]
        number = filled_with(other)
        if number is not None and _is_score(value, found):
            is_enough = how in ("GreaterOrEqual", "Less")  # the latter says what is not
            numbers.add(float(np.nextafter(np.float32(number), np.float32(-inf))) if is_enough else number)
    if len(numbers) > 1:
        return None
    return Least(numbers.pop(), True) if numbers else Least(found.lowest, False)


def _is_score(value: ir.Value, found: Loop) -> bool:
    open_, seen = [value], set()
    while open_:
        value = open_.pop()
        if value is found.scores or (value is found.left.before and found.left.first is found.scores):
            return True
        node = made_by(value, *_SCORES, "Mul")
        if value not in seen and node is not None and value is node.outputs[0]:
            open_ += _data(node)
        seen.add(value)
    return False


def _data(node: ir.Node) -> list[ir.Value]:
    """What a node hands on, without the places and conditions by which it does."""
    return list(
        node.inputs[1:] if node.op_type == "Where" else node.inputs if node.op_type == "Mul" else node.inputs[:1]
    )


def is_below_all(lowest: float, scores: ir.Value) -> bool:
    """Whether a number that can be compared is below any score."""
    if -inf < lowest <= BELOW_SCORES:
        return True
    while (node := made_by(scores, *_SCORES)) is not None and node.op_type != "Where":
        scores = node.inputs[0]
    return -inf < lowest <= 0 and made_by(scores, *_POSITIVE) is not None


# ---- What is read of it ----


def outputs_of(scope: Scope, found: Loop) -> list[Output] | None:
    """None if something is read that is not known."""
    made = [_of_state(scope, found, s) for s in states(found.node) if _is_read(s.last)]
    made += [_of_each_step(scope, found, *s) for s in of_steps(found.node) if _is_read(s[1])]
    return made if made and None not in made else None


def _is_read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def _of_state(scope: Scope, found: Loop, state: State) -> Output | None:
    if (grown := made_by(state.after, "SequenceInsert")) is not None:
        readers = [node for node, _ in state.last.uses()]
        if len(readers) != 1 or not is_standard(readers[0], "ConcatFromSequence"):
            return None
        return _of_each_step(scope, found, grown.inputs[1], readers[0].outputs[0])
    first, shape = filled_with(state.first), scope.shape(state.last)
    added = made_by(number_itself(state.after), "Add")
    if first == 0 and added is not None and {1} == {scalar(v) for v in added.inputs} - {None}:
        return Output(state.last, "count") if shape == () else None
    if first == 0 and shape == (found.count,) and _is_mask(state):
        return Output(state.last, "mask")
    written = made_by(number_itself(state.after), "ScatterElements", "ScatterND", "Where")
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
    """What it is of the best box, and what it is where nothing is left."""
    fill: float | None = None
    while (node := value.producer()) is not None:
        if node is found.pick:
            kind, otherwise = ("places", 0) if value is node.outputs[-1] else ("scores", found.lowest)
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
    """Of a tensor with one element of each step, or, if `first` is what the loop begins with, of a tensor like it."""
    shape = scope.shape(value)
    if not shape or any(extent != 1 for extent in shape[1:]):
        return None
    if scope.sizes_are_fixed or (first is not None and _has_constant_size(first)):
        return shape[0]
    if first is not None:
        return ALL if shape[0] == found.count else None
    return found.steps if found.steps in (ALL, shape[0]) else None


def _has_constant_size(filled: ir.Value) -> bool:
    node = made_by(filled, "ConstantOfShape", "Expand")
    return constant(filled if node is None else node.inputs[-1]) is not None
