"""What patterns of suppression written out share: the boxes, the rule by which one goes, polyop's nodes for it, and boxes to
compare with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import constant, is_standard, made_by, outer_values, scalar, trail
from polyop.optimizing.matching import Builder
from polyop.optimizing.patterns._loops import with_inner
from polyop.optimizing.scope import Scope

NAME = "greedy suppression"
UNTOLD = "which overlap it allows cannot be told from the graph"
_NODE = "mmcv::NonMaxSuppression"
_MOST_STEPS = 200
# Of a box: its corners, and behind them perhaps its score and class.
_COLUMNS = (4, 5, 6)
_SAME_NUMBERS = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze")
# Comparisons read from the other side.
TURNED = {
    "Greater": "Less", "GreaterOrEqual": "LessOrEqual", "Less": "Greater", "LessOrEqual": "GreaterOrEqual"
}  # fmt: skip


@dataclass
class Rule:
    threshold: float
    offset: int  # that is added to widths and heights
    empty_go: bool  # of two boxes without an area the second goes, for their IoU is no number


# ---- What a loop computes with ----


def boxes_of(scope: Scope, loop: ir.Node, count: int, other: ir.Value | None) -> ir.Value | None:
    """The nearest tensor of so many boxes that the loop computes with, but for what `other` is made of, and sizes."""
    open_, seen = [v for v in outer_values(loop) if v is not other], {other}
    while open_ and len(seen) < _MOST_STEPS:
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
    """Exporters write boxes[:, 0] as a slice of all boxes, and of that a column."""
    while (node := made_by(value, "Slice")) is not None and scope.shape(node.inputs[0]) == scope.shape(value):
        steps = scope.numbers(node.inputs[4]) if len(node.inputs) > 4 else None
        if steps is not None and (steps < 0).any():
            break
        value = node.inputs[0]
    return value


def filled_with(value: ir.Value | None) -> float | None:
    """The one number that all elements of a tensor are."""
    if (array := constant(value)) is not None:
        first = array.reshape(-1)[:1]
        return float(first[0]) if first.size and array.dtype.kind in "biuf" and (array == first).all() else None
    filled = made_by(value, "ConstantOfShape", "Expand", "Cast", "Identity")
    if filled is None:
        return None
    if filled.op_type == "ConstantOfShape":
        number = filled.attributes.get("value")
        return float(number.value.numpy().item()) if number is not None else 0.0
    return filled_with(filled.inputs[0])


def number_itself(value: ir.Value) -> ir.Value:
    while (node := made_by(value, *_SAME_NUMBERS)) is not None:
        value = node.inputs[0]
    return value


def is_length(scope: Scope, steps: ir.Value | None, count: int) -> bool:
    """Whether it is the number of boxes, and will be where there are more of them."""
    number = scope.numbers(steps)
    if number is None or number.size != 1 or number.item() != count:
        return False
    return scope.sizes_are_fixed or is_standard(trail(number_itself(steps))[-1].producer(), "Shape", "Size")


def compared_lengths(loop: ir.Node) -> set[int]:
    """What numbers of steps or boxes are compared with in a loop, but for none and one."""
    compared = [v for n in with_inner([loop]) if is_standard(n, *TURNED) for v in n.inputs]
    integers = [a for v in compared if (a := constant(v)) is not None and a.dtype.kind == "i"]
    return {number for a in integers for number in a.reshape(-1).tolist()} - {0, 1}


# ---- Which box goes ----


def rule_of(nodes: Iterable[ir.Node]) -> Rule | None:
    """By the one place where a quotient is compared with a number."""
    inner = list(with_inner(nodes))
    found = {c for node in inner if (c := _comparison(node)) is not None}
    if len(found) != 1:
        return None
    how, number, never_empty = found.pop()
    # Where equal ones go, so do those above the number before.
    threshold = float(np.nextafter(np.float32(number), np.float32(0))) if how in ("Less", "GreaterOrEqual") else number
    ones = [n for n in inner if is_standard(n, "Add") and any(_is_real_one(v) for v in n.inputs)]
    return Rule(threshold, int(bool(ones)), how.startswith("Less") and not never_empty)


def _comparison(node: ir.Node) -> tuple[str, float, bool] | None:
    """How a quotient is compared with which number, and whether its divisor is kept from being 0."""
    if not is_standard(node, *TURNED):
        return None
    value, other = node.inputs
    how = node.op_type
    if scalar(other) is None:
        value, other, how = other, value, TURNED[how]
    number, quotient = scalar(other), made_by(trail(value)[-1], "Div")
    if number is None or quotient is None or not 0 <= number <= 1:
        return None
    divisor = quotient.inputs[1].producer()
    kept = is_standard(divisor, "Add", "Max", "Clip") and any((scalar(v) or 0) > 0 for v in divisor.inputs[1:])
    return how, number, kept


def _is_real_one(value: ir.Value | None) -> bool:
    array = constant(value)
    return array is not None and array.dtype.kind == "f" and array.size == 1 and array.item() == 1


# ---- polyop's nodes for it ----


def in_order(b: Builder, boxes: ir.Value) -> ir.Value:
    """Scores of boxes that lie by falling scores already."""
    places = b("Range", b.constant(0), b("Squeeze", b("Shape", boxes, end=1)), b.constant(1))
    return b("Neg", b("Cast", places, to=ir.DataType.FLOAT.value))


def suppress(
    b: Builder, boxes: ir.Value, scores: ir.Value, rule: Rule, score_threshold: float | None = None
) -> ir.Value:
    """Places of the boxes that are kept, by falling scores, of those above the threshold."""
    zero, two, four, one = (b.constant([i]) for i in (0, 2, 4, 1))
    near, far = b("Slice", boxes, zero, two, one), b("Slice", boxes, two, four, one)
    # Functions of standard operators would put reversed corners in order, which here overlap with nothing.
    least = b("Sub", near, b.constant(rule.offset, np.float32)) if rule.offset else near
    upright = b("Concat", near, b("Max", far, least), axis=1)
    kept = b(_NODE, upright, scores, iou_threshold=rule.threshold, offset=rule.offset, score_threshold=score_threshold)
    if not rule.empty_go:
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
    goes = b("And", is_empty, b("Greater", so_far, b.constant(1)))
    return b("Compress", kept, b("Not", goes), axis=0)


def mask_of(b: Builder, places: ir.Value, boxes: ir.Value) -> ir.Value:
    """True for the boxes at those places."""
    false, true = (ir.tensor(np.array([v])) for v in (False, True))
    none = b("ConstantOfShape", b("Shape", boxes, end=1), value=ir.Attr("value", ir.AttributeType.TENSOR, false))
    all_ = b("ConstantOfShape", b("Shape", places), value=ir.Attr("value", ir.AttributeType.TENSOR, true))
    return b("ScatterElements", none, places, all_, axis=0)


# ---- Values to compare with ----


def drawn_boxes(rng: np.random.Generator, like: np.ndarray, proper: bool = False, crowded: bool = False) -> np.ndarray:
    """Boxes of which many overlap (most, where they shall be crowded), some the same as others; unless they shall be proper,
    some without an area, some reversed."""
    count, columns = like.shape
    corner = rng.uniform(0, 4 if crowded else 4 * count**0.5, (count, 2))
    sides = rng.uniform(2, 20, (count, 2))
    if not proper:
        sides = np.where(rng.random((count, 1)) < 0.1, sides * rng.choice([0.0, -1.0], (count, 2)), sides)
    boxes = np.concatenate([corner, corner + sides, rng.random((count, columns - 4))], 1)
    again = rng.random(count) < 0.1
    boxes[again] = boxes[rng.permutation(count)][again]
    return boxes.astype(like.dtype)
