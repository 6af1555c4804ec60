# SPDX-License-Identifier: Apache-2.0
"""Greedy non-maximum suppression in a loop over the sorted boxes, as exporters write torch code without an operator.

Either with a list of candidate indices that shrinks with every kept box:

    while order.numel() > 0:                  order: by descending score; or ascending, and taken from the end
        i = order[0]; keep.append(i); rest = order[1:]
        order = rest[iou(boxes[i], boxes[rest]) <= threshold]
    keep = stack(keep)

or with a mask of sorted boxes, in a Loop or a Scan, with a matrix of all pairs or row by row:

    for i in range(n):
        keep = keep & ~(keep[i] & (iou[i] > threshold) & (arange(n) > i))      or the suppressed boxes, by `|`

Boxes are (x1, y1, x2, y2), optionally followed by more columns, and may include the last pixel (x2 - x1 + 1). The loop
must depend on nothing but the boxes and their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import cone_of, constant, filled_with, is_read, is_standard, producer, scalar
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.patterns._loops import State, of_steps, scanned, states
from polyop.optimizing.patterns._suppression import (
    NAME,
    UNKNOWN_RULE,
    boxes_of,
    compared_lengths,
    in_order,
    is_length,
    mask_of,
    number_itself,
    random_boxes,
    rule_of,
    suppress,
)
from polyop.optimizing.scope import Scope

__all__ = ["NAME", "ORDER", "find"]

ORDER = 40


@dataclass
class _Loop:
    """A recognized loop. output: the kept indices in order; without `order` a mask of the sorted boxes."""

    node: ir.Node
    output: ir.Value
    count: int  # of boxes
    order: ir.Value | None = None
    is_rising: bool = False  # the order is ascending
    among: ir.Value | None = None  # a mask of the candidates, if not all boxes are
    marks_removed: bool = False  # the mask contains the suppressed boxes


def find(scope: Scope) -> Iterator[Match]:
    def match(node: ir.Node) -> Match | None:
        found = None
        if is_standard(node, "ConcatFromSequence"):
            found = _listed(scope, node)
        elif is_standard(node, "Loop", "Scan"):
            found = _masked(scope, node)
        return _match(scope, found) if found is not None else None

    yield from matches_of(scope.graph, match)


def _match(scope: Scope, found: _Loop) -> Match | None:
    boxes = boxes_of(scope, found.node, found.count, found.among if found.order is None else found.order)
    if boxes is None:
        return None
    inputs = [boxes, *(v for v in (found.order, found.among) if v is not None)]
    nodes = cone_of([found.output], inputs)
    if nodes is None:
        return None
    rule = rule_of(nodes)

    def build(b: Builder, given: list[ir.Value]) -> list[ir.Value]:
        boxes, *some = given  # the order of the boxes, or a mask of the candidates
        if not some:
            kept = suppress(b, boxes, in_order(b, boxes), rule)
        else:
            kept = _kept_of(b, boxes, some[0] if found.order is not None else _indices(b, some[0]))
        if found.order is not None:
            return [kept]
        mask = mask_of(b, kept, boxes)
        return [b("Not", mask) if found.marks_removed else mask]

    def _kept_of(b: Builder, boxes: ir.Value, order: ir.Value) -> ir.Value:
        if found.is_rising:
            order = b("Slice", order, b.constant([-1]), b.constant([-(2**63) + 1]), b.constant([0]), b.constant([-1]))
        ordered = b("Gather", boxes, order, axis=0)
        return b("Gather", order, suppress(b, ordered, in_order(b, ordered), rule), axis=0)

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        count = len(arrays[0])
        drawn = random_boxes(rng, arrays[0])
        if found.order is not None:
            return [drawn, rng.permutation(count).astype(arrays[1].dtype)]
        return [drawn, *(rng.random(count) < 0.7 for _ in arrays[1:])]

    pairs = float(found.count * (found.count - 1) / 2)
    where, refused = name_of(found.node), "" if rule is not None else UNKNOWN_RULE
    return Match(where, inputs, [found.output], build, pairs, refused, feeds=feeds)


def _indices(b: Builder, mask: ir.Value) -> ir.Value:
    return b("Squeeze", b("NonZero", mask), b.constant([0]))


# ---- The loops ----


def _listed(scope: Scope, joined: ir.Node) -> _Loop | None:
    """Recognizes a loop with a list. joined: the node that concatenates the kept indices."""
    loop = producer(joined.inputs[0], "Loop")
    if loop is None:
        return None
    carried = states(loop)
    keep = next((s for s in carried if s.last is joined.inputs[0]), None)
    if keep is None or producer(keep.first, "SequenceEmpty") is None:
        return None
    grown = producer(keep.after, "SequenceInsert")
    if grown is None or grown.inputs[0] is not keep.before:
        return None
    taken = producer(number_itself(grown.inputs[1]), "Gather")
    if taken is None or scalar(taken.inputs[1]) not in (0, -1):
        return None
    order = next((s.first for s in carried if s.before is taken.inputs[0]), None)
    shape = scope.shape(order)
    if shape is None or len(shape) != 1 or shape[0] == 0 or len(scope.shape(joined.outputs[0]) or ()) != 1:
        return None
    if not _ends_with_the_boxes(scope, loop, shape[0]):
        return None
    return _Loop(loop, joined.outputs[0], shape[0], order, scalar(taken.inputs[1]) == -1)


def _masked(scope: Scope, loop: ir.Node) -> _Loop | None:
    read = [v for v in loop.outputs if is_read(v)]
    if len(read) != 1:
        return None
    shape = scope.shape(read[0])
    if shape is None or len(shape) != 1 or shape[0] < 2 or not _ends_with_the_boxes(scope, loop, shape[0]):
        return None
    if not scope.sizes_are_fixed and not _takes_all(scope, loop, shape[0]):
        return None
    is_of_steps = any(read[0] is result for _, result in of_steps(loop))  # then the step tests whether its box is kept
    for state in states(loop):
        is_it = scope.shape(state.first) == shape and (is_of_steps or read[0] is state.last)
        if is_it and (begins := _begins(state)) is not None:
            among, marks_removed = begins
            return _Loop(loop, read[0], shape[0], among=among, marks_removed=marks_removed and not is_of_steps)
    return None


def _begins(mask: State) -> tuple[ir.Value | None, bool] | None:
    """Returns the mask of the candidates, if not all boxes are, and True if the loop's mask contains suppressed
    boxes."""
    number = filled_with(mask.first)
    if number is not None:
        return None, not number
    is_bool = ir.DataType.BOOL in (mask.first.dtype, mask.before.dtype, mask.last.dtype)
    return (mask.first, False) if is_bool and producer(mask.after, "And") is not None else None


def _ends_with_the_boxes(scope: Scope, loop: ir.Node, count: int) -> bool:
    """Returns True if the loop runs until no candidate remains: a limit has no effect if fewer boxes are kept."""
    if is_standard(loop, "Scan"):
        slices, axis = scanned(loop)
        shape = scope.shape(slices)
        return shape is not None and shape[axis] == count
    steps = loop.inputs[0]
    if steps is not None and scalar(steps) != 2**63 - 1 and not is_length(scope, steps, count):
        return False
    return compared_lengths(loop) <= ({count} if scope.sizes_are_fixed else set())


def _takes_all(scope: Scope, loop: ir.Node, count: int) -> bool:
    """Returns True if the number of steps is the number of boxes, for any number of boxes."""
    if is_standard(loop, "Scan"):
        return constant(scanned(loop)[0]) is None
    return is_length(scope, loop.inputs[0], count)
