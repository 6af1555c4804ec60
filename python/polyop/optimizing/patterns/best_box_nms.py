# SPDX-License-Identifier: Apache-2.0
"""Greedy non-maximum suppression that repeatedly picks the best remaining box, in a Loop or a Scan:

    while (left > min_score).any():   or a number of times, or both
        i = left.argmax(); keep.append(i)
        left = where((iou(boxes[i], boxes) > threshold) | (arange(n) == i), lowest, left)

`left` contains scores, as here, or is a mask: i = where(left, scores, lowest).argmax(). The outputs are the indices and
the scores of the kept boxes (as a list, per step, or written into a tensor), their number, and a mask.

Boxes are as in greedy_nms.py. An output of fixed length is padded with the loop's results when no box remains.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import cone_of, is_standard
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.patterns._best_box import (
    ALL,
    BELOW_SCORES,
    Loop,
    Output,
    find_loop,
    is_below_all_scores,
    min_of,
    outputs_of,
    removes_the_best,
)
from polyop.optimizing.patterns._suppression import (
    NAME,
    UNKNOWN_RULE,
    Rule,
    boxes_of,
    mask_of,
    random_boxes,
    rule_of,
    suppress,
)
from polyop.optimizing.scope import Scope

__all__ = ["NAME", "ORDER", "find"]

ORDER = 41


def find(scope: Scope) -> Iterator[Match]:
    def match(node: ir.Node) -> Match | None:
        found = find_loop(scope, node)
        return _match(scope, found) if found is not None else None

    yield from matches_of((n for n in scope.graph if is_standard(n, "Loop", "Scan")), match)


def _match(scope: Scope, found: Loop) -> Match | None:
    boxes, outputs = boxes_of(scope, found.node, found.count, found.scores), outputs_of(scope, found)
    if boxes is None or outputs is None:
        return None
    inputs = [boxes, found.scores]
    nodes = cone_of([o.value for o in outputs], inputs)
    if nodes is None:
        return None
    rule, min_score = rule_of(nodes), min_of(found, nodes)
    if rule is None or min_score is None:
        refused = UNKNOWN_RULE if rule is None else "its score threshold is not recognized"
        return Match(name_of(found.node), inputs, [o.value for o in outputs], lambda b, given: given, 0, refused)

    def build(b: Builder, given: list[ir.Value]) -> list[ir.Value]:
        boxes, scores = given
        kept = _kept(b, boxes, scores, rule, min_score.score)
        if found.steps != ALL:
            kept = b("Slice", kept, b.constant([0]), b.constant([found.steps]), b.constant([0]))
        return [_output(b, output, scope, kept, *given) for output in outputs]

    # The loop might never end if a score is as low as that of removed boxes, or if a box does not suppress itself.
    stops = found.left.first is found.scores and min_score.is_compared and min_score.score >= found.lowest
    is_above = (found.ends and not stops) or is_below_all_scores(found.lowest, found.scores)
    only_proper = found.ends and not removes_the_best(found)

    # With a fixed number of steps, some steps must find no box: use few boxes, or many that overlap.
    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        boxes, scores = arrays
        drawn = _random_scores(rng, len(scores), min_score.score, found.lowest if is_above else None)
        if not found.ends and not is_above:
            few = found.steps // 2 if found.steps != ALL else len(scores) // 2
            drawn[rng.permutation(len(scores))[few:]] -= 2
        crowded = not found.ends and is_above
        return [random_boxes(rng, boxes, only_proper, crowded), drawn.astype(scores.dtype)]

    pairs = float(found.count * (found.count - 1) / 2)
    return Match(name_of(found.node), inputs, [o.value for o in outputs], build, pairs, feeds=feeds)


# ---- The replacement ----


def _kept(b: Builder, boxes: ir.Value, scores: ir.Value, rule: Rule, min_score: float) -> ir.Value:
    if isfinite(min_score):
        return suppress(b, boxes, scores, rule, min_score)
    kept = suppress(b, boxes, scores, rule)
    return b(
        "Compress", kept, b("Greater", b("Gather", scores, kept, axis=0), b.constant(min_score, np.float32)), axis=0
    )


def _output(b: Builder, output: Output, scope: Scope, kept: ir.Value, boxes: ir.Value, scores: ir.Value) -> ir.Value:
    dtype = output.value.dtype
    if output.kind == "mask":
        return mask_of(b, kept, boxes)
    if output.kind == "count":
        count = b("Squeeze", b("Shape", kept), b.constant([0]))
        return b("Cast", count, to=dtype.value) if dtype not in (None, ir.DataType.INT64) else count
    result = kept if output.kind == "indices" else b("Gather", scores, kept, axis=0)
    if output.length is not None:
        length = b("Shape", scores) if output.length == ALL else b.constant([output.length])
        result = b("Slice", result, b.constant([0]), length, b.constant([0]))
        missing = b("Sub", length, b("Shape", result))
        fill = b.constant(output.fill, np.int64 if output.kind == "indices" else np.float32)
        result = b("Pad", result, b("Concat", b.constant([0]), missing, axis=0), fill)
    if len(shape := scope.shape(output.value) or ()) > 1:
        result = b("Reshape", result, b.constant([-1, *shape[1:]]))
    if output.kind == "indices" and dtype not in (None, ir.DataType.INT64):
        result = b("Cast", result, to=dtype.value)
    return result


# ---- Values to compare with ----


def _random_scores(rng: np.random.Generator, count: int, min_score: float, above: float | None) -> np.ndarray:
    """Returns random scores: some are equal, some too low, and some minus infinity unless all must exceed `above`."""
    begin = next((s for s in (min_score, above) if s is not None and s > BELOW_SCORES), 0.0)
    scores = begin + rng.uniform(-0.5, 1, count)
    if above is not None:
        scores = np.where(scores > above, scores, max(begin, above) + rng.uniform(0.01, 1, count))
    again = rng.random(count) < 0.1
    scores[again] = scores[rng.permutation(count)][again]
    if above is None:
        scores[rng.random(count) < 0.05] = -inf
    return scores
