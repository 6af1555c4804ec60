"""Greedy non-maximum suppression written out box by box in a loop, as exporters write down torch code that has no operator
for it. A list of indices, that falls shorter with every box that is kept:

    while order.numel() > 0:                  order: the boxes by falling scores; or by rising ones, taken from the end
        i = order[0]; keep.append(i); rest = order[1:]
        order = rest[iou(boxes[i], boxes[rest]) <= threshold]
    keep = stack(keep)

or a mask of boxes that lie in their order already, by a matrix of all pairs or row by row:

    for i in range(n):
        keep = keep & ~(keep[i] & (iou[i] > threshold) & (arange(n) > i))

Boxes are (x1, y1, x2, y2), and the last pixels may count (x2 - x1 + 1). The loop has to compute of boxes and their order
alone: nothing tells what else would be meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import cone, constant, is_standard, made_by, outer_values, scalar, subgraphs_of, trail
from polyop.optimizing.matching import Builder, Match, name_of
from polyop.optimizing.scope import Scope

NAME = "greedy suppression"
ORDER = 40
NODE = "mmcv::NonMaxSuppression"
_MOST_STEPS = 200
_SAME_NUMBERS = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze")
# Comparisons read from the other side.
_TURNED = {
    "Greater": "Less", "GreaterOrEqual": "LessOrEqual", "Less": "Greater", "LessOrEqual": "GreaterOrEqual"
}  # fmt: skip


@dataclass
class _Loop:
    """output: the kept indices, in their order; or, without `order`, a mask of the boxes, which lie in it."""

    node: ir.Node
    output: ir.Value
    count: int  # of boxes
    order: ir.Value | None = None
    is_rising: bool = False  # the best are last


@dataclass
class _Rule:
    threshold: float
    offset: int  # that is added to widths and heights
    empty_go: bool  # of two boxes without an area the second goes, for their IoU is no number


def find(scope: Scope) -> Iterator[Match]:
    for node in scope.graph:
        found = None
        if is_standard(node, "ConcatFromSequence"):
            found = _listed(scope, node)
        elif is_standard(node, "Loop"):
            found = _masked(scope, node)
        if found is not None and (match := _match(scope, found)) is not None:
            yield match


def _match(scope: Scope, found: _Loop) -> Match | None:
    boxes = _boxes(scope, found)
    if boxes is None:
        return None
    inputs = [boxes] if found.order is None else [boxes, found.order]
    try:
        nodes, read = cone([found.output], inputs)
    except ValueError:
        return None
    if any(constant(v) is None and not is_standard(v.producer(), "Shape", "Size") for v in read):
        return None
    rule = _rule(list(_with_inner(nodes)))
    refused = "" if rule is not None else "which overlap it allows cannot be told from the graph"

    def build(b: Builder, given: list[ir.Value]) -> list[ir.Value]:
        if found.order is None:
            return [_mask(b, given[0], _suppress(b, given[0], rule))]
        boxes, order = given
        if found.is_rising:
            order = b("Slice", order, b.constant([-1]), b.constant([-(2**63) + 1]), b.constant([0]), b.constant([-1]))
        ordered = b("Gather", boxes, order, axis=0)
        return [b("Gather", order, _suppress(b, ordered, rule), axis=0)]

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        drawn = _drawn(rng, found.count).astype(arrays[0].dtype)
        return [drawn, *(rng.permutation(found.count).astype(order.dtype) for order in arrays[1:])]

    pairs = float(found.count * (found.count - 1) / 2)
    return Match(name_of(found.node), inputs, [found.output], build, pairs, refused, feeds=feeds)


# ---- The loops ----


def _listed(scope: Scope, joined: ir.Node) -> _Loop | None:
    """joined: what makes one tensor of the list of kept indices."""
    loop = made_by(joined.inputs[0], "Loop")
    if loop is None or not _has_no_limit(scope, loop):
        return None
    body, k = loop.attributes["body"].value, list(loop.outputs).index(joined.inputs[0])
    grown = made_by(body.outputs[k + 1], "SequenceInsert")
    if (
        grown is None
        or grown.inputs[0] is not body.inputs[k + 2]
        or made_by(loop.inputs[k + 2], "SequenceEmpty") is None
    ):
        return None
    taken = made_by(_number_itself(grown.inputs[1]), "Gather")
    if taken is None or taken.inputs[0] not in body.inputs[2:] or scalar(taken.inputs[1]) not in (0, -1):
        return None
    order = loop.inputs[list(body.inputs).index(taken.inputs[0])]
    shape = scope.shape(order)
    if shape is None or len(shape) != 1 or shape[0] == 0 or len(scope.shape(joined.outputs[0]) or ()) != 1:
        return None
    return _Loop(loop, joined.outputs[0], shape[0], order, scalar(taken.inputs[1]) == -1)


def _has_no_limit(scope: Scope, loop: ir.Node) -> bool:
    """Whether it ends only where no box is left. Where sizes cannot change, a comparison shows it."""
    if scope.sizes_are_fixed:
        return True
    trips = loop.inputs[0]
    if trips is not None and scalar(trips) != 2**63 - 1:
        return False
    inner = [n for n in _with_inner([loop]) if is_standard(n, *_TURNED)]
    integers = [a for n in inner for v in n.inputs if (a := constant(v)) is not None and a.dtype.kind == "i"]
    return all(a.size == 1 and a.item() in (0, 1) for a in integers)


def _masked(scope: Scope, loop: ir.Node) -> _Loop | None:
    read = [v for v in loop.outputs if v.uses() or v.is_graph_output()]
    if len(read) != 1 or list(loop.outputs).index(read[0]) + 2 >= len(loop.inputs):
        return None
    shape, first = scope.shape(read[0]), loop.inputs[list(loop.outputs).index(read[0]) + 2]
    if shape is None or len(shape) != 1 or shape[0] < 2 or not _is_all_true(first):
        return None
    if not scope.sizes_are_fixed and not _is_length(scope, loop.inputs[0], shape[0]):
        return None
    return _Loop(loop, read[0], shape[0])


def _is_all_true(mask: ir.Value | None) -> bool:
    if (array := constant(mask)) is not None:
        return array.dtype == np.bool_ and bool(array.all())
    filled = made_by(mask, "ConstantOfShape", "Expand", "Cast")
    if filled is None:
        return False
    if filled.op_type == "ConstantOfShape":
        value = filled.attributes.get("value")
        return value is not None and bool(value.value.numpy().all())
    number = constant(filled.inputs[0])
    return bool(number.all()) if number is not None else _is_all_true(filled.inputs[0])


def _is_length(scope: Scope, trips: ir.Value | None, count: int) -> bool:
    """Whether it is the number of boxes, and will be where there are more of them."""
    number = scope.numbers(trips)
    if number is None or number.size != 1 or number.item() != count:
        return False
    return is_standard(trail(_number_itself(trips))[-1].producer(), "Shape", "Size")


def _number_itself(value: ir.Value) -> ir.Value:
    while (node := made_by(value, *_SAME_NUMBERS)) is not None:
        value = node.inputs[0]
    return value


# ---- What it computes with ----


def _boxes(scope: Scope, found: _Loop) -> ir.Value | None:
    """The nearest tensor [boxes, 4] that the loop computes with."""
    open_, seen = [v for v in outer_values(found.node) if v is not found.order], {found.order}
    while open_ and len(seen) < _MOST_STEPS:
        value = open_.pop(0)
        if value in seen:
            continue
        seen.add(value)
        if scope.shape(value) == (found.count, 4) and value.dtype not in (ir.DataType.INT64, ir.DataType.BOOL):
            return value
        if (node := value.producer()) is not None and value.graph is scope.graph:
            open_ += outer_values(node)
    return None


def _with_inner(nodes: Iterable[ir.Node]) -> Iterator[ir.Node]:
    for node in nodes:
        yield node
        for attribute in node.attributes.values():
            for graph in subgraphs_of(attribute):
                yield from _with_inner(graph)


def _rule(nodes: list[ir.Node]) -> _Rule | None:
    """By the one place where a quotient is compared with a number."""
    found = {c for node in nodes if (c := _comparison(node)) is not None}
    if len(found) != 1:
        return None
    how, number, never_empty = found.pop()
    # Where equal ones go, so do those above the number before.
    threshold = float(np.nextafter(np.float32(number), np.float32(0))) if how in ("Less", "GreaterOrEqual") else number
    ones = [n for n in nodes if is_standard(n, "Add") and any(_is_real_one(v) for v in n.inputs)]
    return _Rule(threshold, int(bool(ones)), how.startswith("Less") and not never_empty)


def _comparison(node: ir.Node) -> tuple[str, float, bool] | None:
    """How a quotient is compared with which number, and whether its divisor is kept from being 0."""
    if not is_standard(node, *_TURNED):
        return None
    value, other = node.inputs
    how = node.op_type
    if scalar(other) is None:
        value, other, how = other, value, _TURNED[how]
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


def _suppress(b: Builder, boxes: ir.Value, rule: _Rule) -> ir.Value:
    """Places of the boxes that are kept, which lie by falling scores."""
    zero, two, four, one = (b.constant([i]) for i in (0, 2, 4, 1))
    near, far = b("Slice", boxes, zero, two, one), b("Slice", boxes, two, four, one)
    # Functions of standard operators would put reversed corners in order, which here overlap with nothing.
    least = b("Sub", near, b.constant(rule.offset, np.float32)) if rule.offset else near
    upright = b("Concat", near, b("Max", far, least), axis=1)
    places = b("Range", b.constant(0), b("Squeeze", b("Shape", boxes, end=1)), b.constant(1))
    scores = b("Neg", b("Cast", places, to=ir.DataType.FLOAT.value))
    kept = b(NODE, upright, scores, iou_threshold=rule.threshold, offset=rule.offset)
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


def _mask(b: Builder, boxes: ir.Value, kept: ir.Value) -> ir.Value:
    false, true = (ir.tensor(np.array([v])) for v in (False, True))
    none = b("ConstantOfShape", b("Shape", boxes, end=1), value=ir.Attr("value", ir.AttributeType.TENSOR, false))
    all_ = b("ConstantOfShape", b("Shape", kept), value=ir.Attr("value", ir.AttributeType.TENSOR, true))
    return b("ScatterElements", none, kept, all_, axis=0)


# ---- Values to compare with ----


def _drawn(rng: np.random.Generator, count: int) -> np.ndarray:
    """Boxes of which many overlap, some the same as others, some without an area, some reversed."""
    corner = rng.uniform(0, 30, (count, 2))
    sides = rng.uniform(2, 20, (count, 2))
    sides = np.where(rng.random((count, 1)) < 0.1, sides * rng.choice([0.0, -1.0], (count, 2)), sides)
    boxes = np.concatenate([corner, corner + sides], 1)
    again = rng.random(count) < 0.1
    boxes[again] = boxes[rng.permutation(count)][again]
    return boxes
