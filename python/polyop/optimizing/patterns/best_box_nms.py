# SPDX-License-Identifier: Apache-2.0
"""Suppression that repeatedly picks the best remaining box, as ops/boxes/patterns/best_box_nms.cc finds it."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite

import numpy as np
import onnx_ir as ir

from polyop.optimizing.finding import Found, find_pattern
from polyop.optimizing.matching import Builder, Match
from polyop.optimizing.patterns._suppression import NAME, Rule, in_f32, mask_of, random_boxes, rule_of, suppress
from polyop.optimizing.scope import Scope

__all__ = ["NAME", "ORDER", "find"]

ORDER = 41
_ALL = -1  # a number of steps, or a length: that of the boxes
_AS_KEPT = -2  # a length: that of the kept boxes
_BELOW_SCORES = -1000.0  # lower values mark removed boxes, not scores
_INDICES, _SCORES, _MASK, _COUNT = range(4)


def find(scope: Scope) -> Iterator[Match]:
    for found in find_pattern(scope, "best box suppression"):
        yield _match(scope, found)


def _match(scope: Scope, found: Found) -> Match:
    if found.refused:
        return found.match()
    given = found.parameters
    steps, ends, is_above = given["steps"], given["ends"], given["is_above"]
    min_score, lowest, *fills = (_number(n) for n in (given["min_score"], given["lowest"], *given["fills"]))

    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        boxes, scores = inputs
        kept = _kept(b, in_f32(b, boxes), in_f32(b, scores), rule_of(found), min_score)
        if steps != _ALL:
            kept = b("Slice", kept, b.constant([0]), b.constant([steps]), b.constant([0]))
        outputs = zip(found.outputs, given["kinds"], given["lengths"], fills, strict=True)
        return [_output(b, *output, scope, kept, boxes, scores) for output in outputs]

    # With a fixed number of steps, some steps must find no box: use few boxes, or many that overlap.
    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        boxes, scores = arrays
        drawn = _random_scores(rng, len(scores), min_score, lowest if is_above else None)
        if not ends and not is_above:
            few = steps // 2 if steps != _ALL else len(scores) // 2
            drawn[rng.permutation(len(scores))[few:]] -= 2
        crowded = not ends and is_above
        return [random_boxes(rng, boxes, bool(given["only_proper"]), crowded), drawn.astype(scores.dtype)]

    return found.match(build, feeds)


def _number(written: float | None) -> float:
    """JSON has no minus infinity."""
    return -inf if written is None else written


# ---- The replacement ----


def _kept(b: Builder, boxes: ir.Value, scores: ir.Value, rule: Rule, min_score: float) -> ir.Value:
    if isfinite(min_score):
        return suppress(b, boxes, scores, rule, min_score)
    kept = suppress(b, boxes, scores, rule)
    return b(
        "Compress", kept, b("Greater", b("Gather", scores, kept, axis=0), b.constant(min_score, np.float32)), axis=0
    )


def _output(
    b: Builder, value: ir.Value, kind: int, length: int, fill: float, scope: Scope,
    kept: ir.Value, boxes: ir.Value, scores: ir.Value,
) -> ir.Value:  # fmt: skip
    dtype = value.dtype
    if kind == _MASK:
        return mask_of(b, kept, boxes)
    if kind == _COUNT:
        count = b("Squeeze", b("Shape", kept), b.constant([0]))
        return b("Cast", count, to=dtype.value) if dtype not in (None, ir.DataType.INT64) else count
    result = kept if kind == _INDICES else b("Gather", scores, kept, axis=0)
    if length != _AS_KEPT:
        extent = b("Shape", scores) if length == _ALL else b.constant([length])
        result = b("Slice", result, b.constant([0]), extent, b.constant([0]))
        missing = b("Sub", extent, b("Shape", result))
        filled = b.constant(fill, np.int64 if kind == _INDICES else (scores.dtype or ir.DataType.FLOAT).numpy())
        result = b("Pad", result, b("Concat", b.constant([0]), missing, axis=0), filled)
    if len(shape := scope.shape(value) or ()) > 1:
        result = b("Reshape", result, b.constant([-1, *shape[1:]]))
    if kind == _INDICES and dtype not in (None, ir.DataType.INT64):
        result = b("Cast", result, to=dtype.value)
    return result


# ---- Values to compare with ----


def _random_scores(rng: np.random.Generator, count: int, min_score: float, above: float | None) -> np.ndarray:
    """Returns random scores: some are equal, some too low, and some minus infinity unless all must exceed `above`."""
    begin = next((s for s in (min_score, above) if s is not None and s > _BELOW_SCORES), 0.0)
    scores = begin + rng.uniform(-0.5, 1, count)
    if above is not None:
        scores = np.where(scores > above, scores, max(begin, above) + rng.uniform(0.01, 1, count))
    again = rng.random(count) < 0.1
    scores[again] = scores[rng.permutation(count)][again]
    if above is None:
        scores[rng.random(count) < 0.05] = -inf
    return scores
