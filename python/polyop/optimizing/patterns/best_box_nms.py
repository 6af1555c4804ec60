"""Greedy non-maximum suppression by looking for the best of what is left, in a Loop or a Scan:

    while (left > least).any():       or so many times, or both
        i = left.argmax(); keep.append(i)
        left = where((iou(boxes[i], boxes) > threshold) | (arange(n) == i), lowest, left)

What is left may be its scores, as here, or a mask of it: i = where(left, scores, lowest).argmax(). Read may be the indices
and the scores of what is kept (as a list, of each step, or written into a tensor), its number, and a mask of it.

Boxes are as in greedy_nms.py. Behind what is kept, a tensor of fixed length has what the loop gives once nothing is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import cone_of, is_standard
from polyop.optimizing.matching import Builder, Match, name_of
from polyop.optimizing.patterns._best_box import (
    ALL,
    BELOW_SCORES,
    Loop,
    Output,
    found_in,
    is_below_all,
    least_of,
    outputs_of,
    takes_out_the_best,
)
from polyop.optimizing.patterns._suppression import (
    NAME,
    UNTOLD,
    Rule,
    boxes_of,
    drawn_boxes,
    mask_of,
    rule_of,
    suppress,
)
from polyop.optimizing.scope import Scope

__all__ = ["NAME", "ORDER", "find"]

ORDER = 41


def find(scope: Scope) -> Iterator[Match]:
    for node in scope.graph:
        found = found_in(scope, node) if is_standard(node, "Loop", "Scan") else None
        if found is not None and (match := _match(scope, found)) is not None:
            yield match


def _match(scope: Scope, found: Loop) -> Match | None:
    boxes, outputs = boxes_of(scope, found.node, found.count, found.scores), outputs_of(scope, found)
    if boxes is None or outputs is None:
        return None
    inputs = [boxes, found.scores]
    nodes = cone_of([o.value for o in outputs], inputs)
    if nodes is None:
        return None
    rule, least = rule_of(nodes), least_of(found, nodes)
    if rule is None or least is None:
        refused = UNTOLD if rule is None else "which scores are enough cannot be told from the graph"
        return Match(name_of(found.node), inputs, [o.value for o in outputs], lambda b, given: given, 0, refused)

    def build(b: Builder, given: list[ir.Value]) -> list[ir.Value]:
        kept = _kept(b, *given, rule, least.score)
        if found.steps != ALL:
            kept = b("Slice", kept, b.constant([0]), b.constant([found.steps]), b.constant([0]))
        return [_made(b, output, scope, kept, *given) for output in outputs]

    # The loop might never end where a score is as low as those of what is not left, or a box does not suppress itself.
    stops = found.left.first is found.scores and least.is_compared and least.score >= found.lowest
    is_above = (found.ends and not stops) or is_below_all(found.lowest, found.scores)
    only_proper = found.ends and not takes_out_the_best(found)

    # Of a number of steps some must find nothing left: few boxes are enough, or, where all have to be, most overlap.
    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        boxes, scores = arrays
        drawn = _drawn_scores(rng, len(scores), least.score, found.lowest if is_above else None)
        if not found.ends and not is_above:
            few = found.steps // 2 if found.steps != ALL else len(scores) // 2
            drawn[rng.permutation(len(scores))[few:]] -= 2
        crowded = not found.ends and is_above
        return [drawn_boxes(rng, boxes, only_proper, crowded), drawn.astype(scores.dtype)]

    pairs = float(found.count * (found.count - 1) / 2)
    return Match(name_of(found.node), inputs, [o.value for o in outputs], build, pairs, feeds=feeds)


# ---- polyop's nodes for it ----


def _kept(b: Builder, boxes: ir.Value, scores: ir.Value, rule: Rule, least: float) -> ir.Value:
    if isfinite(least):
        return suppress(b, boxes, scores, rule, least)
    kept = suppress(b, boxes, scores, rule)
    return b("Compress", kept, b("Greater", b("Gather", scores, kept, axis=0), b.constant(least, np.float32)), axis=0)


def _made(b: Builder, output: Output, scope: Scope, kept: ir.Value, boxes: ir.Value, scores: ir.Value) -> ir.Value:
    dtype = output.value.dtype
    if output.kind == "mask":
        return mask_of(b, kept, boxes)
    if output.kind == "count":
        count = b("Squeeze", b("Shape", kept), b.constant([0]))
        return b("Cast", count, to=dtype.value) if dtype not in (None, ir.DataType.INT64) else count
    made = kept if output.kind == "places" else b("Gather", scores, kept, axis=0)
    if output.length is not None:
        length = b("Shape", scores) if output.length == ALL else b.constant([output.length])
        made = b("Slice", made, b.constant([0]), length, b.constant([0]))
        missing = b("Sub", length, b("Shape", made))
        fill = b.constant(output.fill, np.int64 if output.kind == "places" else np.float32)
        made = b("Pad", made, b("Concat", b.constant([0]), missing, axis=0), fill)
    if len(shape := scope.shape(output.value) or ()) > 1:
        made = b("Reshape", made, b.constant([-1, *shape[1:]]))
    if output.kind == "places" and dtype not in (None, ir.DataType.INT64):
        made = b("Cast", made, to=dtype.value)
    return made


# ---- Values to compare with ----


def _drawn_scores(rng: np.random.Generator, count: int, least: float, above: float | None) -> np.ndarray:
    """Some equal, some not enough, and, unless all shall be `above` something, some minus infinity."""
    begin = next((s for s in (least, above) if s is not None and s > BELOW_SCORES), 0.0)
    scores = begin + rng.uniform(-0.5, 1, count)
    if above is not None:
        scores = np.where(scores > above, scores, max(begin, above) + rng.uniform(0.01, 1, count))
    again = rng.random(count) < 0.1
    scores[again] = scores[rng.permutation(count)][again]
    if above is None:
        scores[rng.random(count) < 0.05] = -inf
    return scores
