# SPDX-License-Identifier: Apache-2.0
"""Shared by the patterns of suppression in loops: the boxes, the rule of suppression, polyop's nodes, and test
boxes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import constant, is_standard, outer_values, producer, scalar, trail
from polyop.optimizing.matching import Builder
from polyop.optimizing.patterns._loops import with_inner
from polyop.optimizing.scope import Scope

NAME = "greedy suppression"
UNKNOWN_RULE = "its IoU threshold is not recognized"
_NODE = "mmcv::NonMaxSuppression"
_MAX_STEPS = 200
# Columns of a box: its corners, optionally followed by its score and class.
_COLUMNS = (4, 5, 6)
_SAME_NUMBERS = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze")
# Comparisons with exchanged operands.
SWAPPED = {"Greater": "Less", "GreaterOrEqual": "LessOrEqual", "Less": "Greater", "LessOrEqual": "GreaterOrEqual"}


@dataclass
class Rule:
    threshold: float
    offset: int  # added to widths and heights
    removes_empty: bool  # the second of two boxes without area is suppressed, because their IoU is NaN


# ---- The inputs of a loop ----


def boxes_of(scope: Scope, loop: ir.Node, count: int, other: ir.Value | None) -> ir.Value | None:
    """Returns the nearest tensor of `count` boxes that the loop reads, except those that `other` and sizes depend
    on."""
    open_, seen = [v for v in outer_values(loop) if v is not other], {other}
    while open_ and len(seen) < _MAX_STEPS:
        value = open_.pop(0)
        if value in seen:
            continue
        seen.add(value)
        shape = scope.shape(value) or ()
        is_real = value.dtype not in (ir.DataType.INT64, ir.DataType.BOOL)
        if len(shape) == 2 and shape[0] == count and shape[1] in _COLUMNS and is_real:
            return _unsliced(scope, value)
        node = value.producer()
        if node is not None and value.graph is scope.graph and not is_standard(node, "Shape", "Size"):
            open_ += outer_values(node)
    return None


def _unsliced(scope: Scope, value: ir.Value) -> ir.Value:
    """Removes slices of all boxes: exporters write boxes[:, 0] as a slice of all boxes, then of a column."""
    while (node := producer(value, "Slice")) is not None and scope.same_shape(node.inputs[0], value):
        steps = scope.numbers(node.inputs[4]) if len(node.inputs) > 4 else None
        if steps is not None and (steps < 0).any():
            break
        value = node.inputs[0]
    return value


def number_itself(value: ir.Value) -> ir.Value:
    while (node := producer(value, *_SAME_NUMBERS)) is not None:
        value = node.inputs[0]
    return value


def is_length(scope: Scope, steps: ir.Value | None, count: int) -> bool:
    """Returns True if the value is the number of boxes, for any number of boxes."""
    number = scope.numbers(steps)
    if number is None or number.size != 1 or number.item() != count:
        return False
    return scope.sizes_are_fixed or is_standard(trail(number_itself(steps))[-1].producer(), "Shape", "Size")


def compared_lengths(loop: ir.Node) -> set[int]:
    """Returns the numbers that a loop compares counts with, except 0 and 1."""
    compared = [v for n in with_inner([loop]) if is_standard(n, *SWAPPED) for v in n.inputs]
    integers = [a for v in compared if (a := constant(v)) is not None and a.dtype.kind == "i"]
    return {number for a in integers for number in a.reshape(-1).tolist()} - {0, 1}


# ---- The rule of suppression ----


def rule_of(nodes: Iterable[ir.Node]) -> Rule | None:
    """Returns the rule, from the only comparison of a quotient with a number; None if there is no such comparison."""
    inner = list(with_inner(nodes))
    found = {c for node in inner if (c := _comparison(node)) is not None}
    if len(found) != 1:
        return None
    how, number, never_empty = found.pop()
    # Suppressing from a threshold on is suppressing above the next smaller number.
    threshold = float(np.nextafter(np.float32(number), np.float32(0))) if how in ("Less", "GreaterOrEqual") else number
    ones = [n for n in inner if is_standard(n, "Add") and any(_is_real_one(v) for v in n.inputs)]
    return Rule(threshold, int(bool(ones)), how.startswith("Less") and not never_empty)


def _comparison(node: ir.Node) -> tuple[str, float, bool] | None:
    """Returns the comparison of a quotient, the number, and True if the divisor is protected from being 0; or None."""
    if not is_standard(node, *SWAPPED):
        return None
    value, other = node.inputs
    how = node.op_type
    if scalar(other) is None:
        value, other, how = other, value, SWAPPED[how]
    number, quotient = scalar(other), producer(trail(value)[-1], "Div")
    if number is None or quotient is None or not 0 <= number <= 1:
        return None
    divisor = quotient.inputs[1].producer()
    kept = is_standard(divisor, "Add", "Max", "Clip") and any((scalar(v) or 0) > 0 for v in divisor.inputs[1:])
    return how, number, kept


def _is_real_one(value: ir.Value | None) -> bool:
    array = constant(value)
    return array is not None and array.dtype.kind == "f" and array.size == 1 and array.item() == 1


# ---- The replacement ----


def in_order(b: Builder, boxes: ir.Value) -> ir.Value:
    """Returns scores for boxes that are already sorted by descending score."""
    indices = b("Range", b.constant(0), b("Squeeze", b("Shape", boxes, end=1)), b.constant(1))
    return b("Neg", b("Cast", indices, to=ir.DataType.FLOAT.value))


def suppress(
    b: Builder, boxes: ir.Value, scores: ir.Value, rule: Rule, score_threshold: float | None = None
) -> ir.Value:
    """Returns the indices of the kept boxes with scores above the threshold, by descending score."""
    zero, two, four, one = (b.constant([i]) for i in (0, 2, 4, 1))
    near, far = b("Slice", boxes, zero, two, one), b("Slice", boxes, two, four, one)
    # The function of standard operators sorts reversed corners, but here such boxes overlap with nothing.
    min_far = b("Sub", near, b.constant(rule.offset, np.float32)) if rule.offset else near
    upright = b("Concat", near, b("Max", far, min_far), axis=1)
    kept = b(_NODE, upright, scores, iou_threshold=rule.threshold, offset=rule.offset, score_threshold=score_threshold)
    if not rule.removes_empty:
        return kept
    sides = b("Sub", b("Gather", far, kept, axis=0), b("Gather", near, kept, axis=0))
    if rule.offset:
        sides = b("Add", sides, b.constant(rule.offset, np.float32))
    area = (
        b("ReduceProd", sides, b.constant([1]), keepdims=0)
        if b.opset >= 18
        else b("ReduceProd", sides, axes=[1], keepdims=0)
    )
    is_empty = b("Equal", area, b.constant(0, np.float32))
    so_far = b("CumSum", b("Cast", is_empty, to=ir.DataType.INT64.value), b.constant(0))
    is_suppressed = b("And", is_empty, b("Greater", so_far, b.constant(1)))
    return b("Compress", kept, b("Not", is_suppressed), axis=0)


def mask_of(b: Builder, indices: ir.Value, boxes: ir.Value) -> ir.Value:
    """Returns a mask that is True at the indices."""
    false, true = (ir.tensor(np.array([v])) for v in (False, True))
    none = b("ConstantOfShape", b("Shape", boxes, end=1), value=ir.Attr("value", ir.AttributeType.TENSOR, false))
    all_ = b("ConstantOfShape", b("Shape", indices), value=ir.Attr("value", ir.AttributeType.TENSOR, true))
    return b("ScatterElements", none, indices, all_, axis=0)


# ---- Values to compare with ----


def random_boxes(rng: np.random.Generator, like: np.ndarray, proper: bool = False, crowded: bool = False) -> np.ndarray:
    """Returns random boxes, many of which overlap and some are equal.

    proper: no box is reversed or without area.
    crowded: most boxes overlap.
    """
    count, columns = like.shape
    corner = rng.uniform(0, 4 if crowded else 4 * count**0.5, (count, 2))
    sides = rng.uniform(2, 20, (count, 2))
    if not proper:
        sides = np.where(rng.random((count, 1)) < 0.1, sides * rng.choice([0.0, -1.0], (count, 2)), sides)
    boxes = np.concatenate([corner, corner + sides, rng.random((count, columns - 4))], 1)
    again = rng.random(count) < 0.1
    boxes[again] = boxes[rng.permutation(count)][again]
    return boxes.astype(like.dtype)
