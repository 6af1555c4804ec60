# SPDX-License-Identifier: Apache-2.0
"""Corner pooling (Law and Deng, 2018): the running maximum of images along rows or columns, forward or backward, in the
forms that exporters write:

    row = x[0]; rows = [row]                           a loop, unrolled
    for i in 1 …: row = maximum(row, x[i]); rows.append(row)
    y = stack(rows)

    for d in 1, 2, 4 …: y[d:] = maximum(y[d:], y[:-d])   doubled steps, as MMCV writes it without an operator
    y = flip(cummax(flip(x)))                            MMCV's cummax, whose indices are unused

Any of them may be flipped. A loop's minimum is the maximum of -x. polyop propagates NaN, which doubled steps may lose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import constant, is_read, is_standard, producer, trail
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope

NAME = "corner pooling"
ORDER = 50
NODE = "mmcv::MMCVCornerPool"
_MODES = {(2, True): "bottom", (2, False): "top", (3, True): "right", (3, False): "left"}


@dataclass
class _Running:
    """`output` is the running maximum or minimum of `x` along the axis."""

    x: ir.Value
    output: ir.Value
    axis: int
    is_forward: bool
    is_minimum: bool = False


def find(scope: Scope) -> Iterator[Match]:
    steps: dict[ir.Value, _Step] = {}

    def add_step(node: ir.Node) -> None:
        if (step := _step(scope, node)) is not None:
            steps[step.output] = step

    yield from matches_of(scope.graph, add_step)
    read = {step.before for step in steps.values()}

    def match(node: ir.Node) -> Match | None:
        last = _result(node) if is_standard(node, "Concat", "ScatterND") else None
        found = None
        if last in steps and last not in read:
            found = _doubled(scope, steps, last)
        elif is_standard(node, "Concat"):
            found = _loop(scope, node)
        elif (node.domain, node.op_type) == ("mmcv", "cummax"):
            found = _cummax(scope, node)
        is_found = found is not None and (found.axis, found.is_forward) in _MODES
        return _match(scope, node, _without_flips(scope, found)) if is_found else None

    yield from matches_of(scope.graph, match)


def _match(scope: Scope, node: ir.Node, found: _Running) -> Match:
    mode = ("top", "bottom", "left", "right").index(_MODES[found.axis, found.is_forward])

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        (x,) = inputs
        pooled = b(NODE, b("Neg", x) if found.is_minimum else x, mode=mode)
        return [b("Neg", pooled) if found.is_minimum else pooled]

    work = float(np.prod(scope.shape(found.output)))
    return Match(name_of(node), [found.x], [found.output], build, work)


def _without_flips(scope: Scope, found: _Running) -> _Running:
    """Removes flips of both ends."""
    uses = list(found.output.uses())
    if len(uses) != 1 or found.output.is_graph_output():
        return found
    before, after = found.x.producer(), uses[0][0]
    if not (_flips(scope, before, found.axis) and _flips(scope, after, found.axis)):
        return found
    return _Running(before.inputs[0], after.outputs[0], found.axis, not found.is_forward, found.is_minimum)


def _flips(scope: Scope, node: ir.Node | None, axis: int) -> bool:
    if not is_standard(node, "Slice") or len(node.inputs) < 5:
        return False
    shape = scope.shape(node.outputs[0])
    if shape is None or shape != scope.shape(node.inputs[0]):
        return False
    start, _, axes, steps = (constant(v) for v in node.inputs[1:5])
    if start is None or axes is None or steps is None or not start.size == axes.size == steps.size == 1:
        return False
    return steps.item() == -1 and axes.item() % len(shape) == axis and start.item() in (-1, shape[axis] - 1)


# ---- A loop, unrolled ----


def _loop(scope: Scope, stacked: ir.Node) -> _Running | None:
    axis, output = stacked.attributes.get_int("axis", 0) % 4, stacked.outputs[0]
    rows = [_row(v) for v in stacked.inputs]
    shape = scope.shape(output)
    if shape is None or len(shape) != 4 or len(rows) < 2 or None in rows:
        return None
    for is_forward in (True, False):
        ordered, indices = (rows, range(len(rows))) if is_forward else (rows[::-1], range(len(rows))[::-1])
        for op_type in ("Max", "Min"):
            x = _so_far(ordered, op_type, axis, indices)
            if x is not None and scope.shape(x) == shape:
                return _Running(x, output, axis, is_forward, op_type == "Min")
    return None


def _row(value: ir.Value) -> ir.Value | None:
    """Returns the row before the stack's dimension was added."""
    node = producer(value, "Unsqueeze", "Reshape")
    return node.inputs[0] if node is not None else None


def _so_far(rows: list[ir.Value], op_type: str, axis: int, indices: range) -> ir.Value | None:
    """Returns x if the rows are its running extremum in the order of `indices`, else None."""
    x = _taken(rows[0], axis, indices[0], len(rows))
    if x is None:
        return None
    for before, row, index in zip(rows, rows[1:], indices[1:], strict=False):
        extremum = producer(row, op_type)
        others = [v for v in extremum.inputs if v is not before] if extremum is not None else []
        if len(others) != 1 or _taken(others[0], axis, index, len(rows)) is not x:
            return None
    return x


def _taken(row: ir.Value, axis: int, position: int, extent: int) -> ir.Value | None:
    """Returns x if row = x[position] along the axis, else None."""
    node = producer(row, "Gather")
    index = constant(node.inputs[1]) if node is not None else None
    if index is None or index.ndim or int(index) % extent != position or node.attributes.get_int("axis", 0) % 4 != axis:
        return None
    return node.inputs[0]


# ---- Doubled steps ----


@dataclass
class _Step:
    """`output` is `before`, except for a part: the maximum of the elements and those at `distance`."""

    before: ir.Value
    output: ir.Value
    axis: int
    distance: int
    is_forward: bool  # the part is the last, else the first


def _doubled(scope: Scope, steps: dict[ir.Value, _Step], last: ir.Value) -> _Running | None:
    """Recognizes consecutive steps of 1, 2, 4, … that cover the whole dimension."""
    chain = [steps[last]]
    while chain[0].before in steps:
        chain.insert(0, steps[chain[0].before])
    axis, is_forward = chain[0].axis, chain[0].is_forward
    extent = scope.shape(last)[axis]
    ways = {(step.axis, step.is_forward) for step in chain}
    distances = [step.distance for step in chain]
    if len(ways) > 1 or distances != [1 << i for i in range(len(chain))] or 2 * distances[-1] < extent:
        return None
    return _Running(chain[0].before, last, axis, is_forward)


def _step(scope: Scope, node: ir.Node) -> _Step | None:
    """Recognizes a step. node: joins the part and the rest, or scatters the part into the previous value."""
    if not is_standard(node, "Concat", "ScatterND"):
        return None
    output = _result(node)
    parts = [trail(node.inputs[2])[-1]] if node.op_type == "ScatterND" else list(node.inputs)
    shape, indices = scope.shape(output), [i for i, v in enumerate(parts) if _larger(v) is not None]
    if shape is None or len(shape) != 4 or len(indices) != 1 or len(parts) > 2:
        return None
    slices = _larger(parts[indices[0]])
    before, part = slices[0].inputs[0], scope.shape(slices[0].outputs[0])
    if slices[1].inputs[0] is not before or scope.shape(before) != shape or part is None or len(part) != 4:
        return None
    shorter = [i for i in range(4) if part[i] != shape[i]]
    if len(shorter) != 1:
        return None
    (axis,) = shorter
    if node.op_type == "Concat":
        is_forward = indices[0] == 1
    else:
        index = constant(node.inputs[1])
        if index is None or index.size == 0:
            return None
        is_forward = int(index.flat[0]) != 0
    return _Step(before, output, axis, shape[axis] - part[axis], is_forward)


def _result(node: ir.Node) -> ir.Value:
    """Returns the node's output, or its transpose if that is the only reader: scatters work on leading dimensions."""
    output = node.outputs[0]
    uses = list(output.uses())
    if node.op_type == "ScatterND" and len(uses) == 1 and is_standard(uses[0][0], "Transpose"):
        return uses[0][0].outputs[0]
    return output


def _larger(value: ir.Value) -> list[ir.Node] | None:
    """Returns the slices a and b of maximum(a, b) or where(a > b, a, b), or None."""
    node = producer(value, "Max", "Where")
    if node is None:
        return None
    pair = list(node.inputs)
    if node.op_type == "Where":
        greater = producer(pair.pop(0), "Greater", "GreaterOrEqual")
        if greater is None or list(greater.inputs) != pair:
            return None
    slices = [producer(v, "Slice") for v in pair]
    return slices if len(slices) == 2 and None not in slices else None


# ---- MMCV's operator ----


def _cummax(scope: Scope, node: ir.Node) -> _Running | None:
    shape = scope.shape(node.inputs[0])
    values, *indices = node.outputs
    if shape is None or len(shape) != 4 or any(is_read(v) for v in indices):
        return None
    return _Running(node.inputs[0], values, node.attributes.get_int("dim", 0) % 4, True)
