# SPDX-License-Identifier: Apache-2.0
"""Greedy suppression in a loop over the sorted boxes, as ops/boxes/patterns/greedy_nms.cc finds it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from polyop.optimizing.finding import Found, find_pattern
from polyop.optimizing.matching import Builder, Match
from polyop.optimizing.patterns._suppression import NAME, in_f32, in_order, mask_of, random_boxes, rule_of, suppress
from polyop.optimizing.scope import Scope

__all__ = ["NAME", "ORDER", "find"]

ORDER = 40


def find(scope: Scope) -> Iterator[Match]:
    for found in find_pattern(scope, NAME):
        yield _match(found)


def _match(found: Found) -> Match:
    is_ordered, is_rising, marks_removed = (
        found.parameters.get(name) for name in ("is_ordered", "is_rising", "marks_removed")
    )

    def build(b: Builder, given: list[ir.Value]) -> list[ir.Value]:
        boxes, *some = given  # the order of the boxes, or a mask of the candidates
        boxes = in_f32(b, boxes)
        if not some:
            kept = suppress(b, boxes, in_order(b, boxes), rule_of(found))
        else:
            kept = _kept_of(b, boxes, some[0] if is_ordered else _indices(b, some[0]))
        if is_ordered:
            return [kept]
        mask = mask_of(b, kept, boxes)
        return [b("Not", mask) if marks_removed else mask]

    def _kept_of(b: Builder, boxes: ir.Value, order: ir.Value) -> ir.Value:
        if is_rising:
            order = b("Slice", order, b.constant([-1]), b.constant([-(2**63) + 1]), b.constant([0]), b.constant([-1]))
        ordered = b("Gather", boxes, order, axis=0)
        return b("Gather", order, suppress(b, ordered, in_order(b, ordered), rule_of(found)), axis=0)

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        count = len(arrays[0])
        drawn = random_boxes(rng, arrays[0])
        if is_ordered:
            return [drawn, rng.permutation(count).astype(arrays[1].dtype)]
        return [drawn, *(rng.random(count) < 0.7 for _ in arrays[1:])]

    return found.match(build, feeds)


def _indices(b: Builder, mask: ir.Value) -> ir.Value:
    return b("Squeeze", b("NonZero", mask), b.constant([0]))
