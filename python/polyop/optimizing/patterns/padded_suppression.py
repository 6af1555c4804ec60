# SPDX-License-Identifier: Apache-2.0
"""The end of a YOLO file that Ultralytics exports with `nms=True`, for NVIDIA's EfficientNMS plugin:

score, class = scores.max(-1)                        scores: [1, B, C]
boxes, score, class = those with score > threshold
keep = nms(boxes / extent + class / C, score)[:K]    or of the boxes alone
output = pad(cat([boxes[keep], score[keep], class[keep]], 1), to K rows)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from polyop.optimizing.graph import is_standard, producer, scalar, trail
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.patterns.efficient_nms import NAME, NVIDIAS_NODE, above
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

__all__ = ["NAME", "ORDER", "TARGETS", "find"]

ORDER = 49  # before single nodes of suppression
TARGETS = (Target.TENSORRT,)
_MAX_NODES = 40  # between the boxes that are compared and those that were chosen by score


@dataclass
class _Column:
    """A part of the output's rows: from boxes, from the largest scores, or from the classes of the largest scores.

    source: the boxes, or the scores of all classes. chosen: what the node `kept` selects from.
    """

    kind: str
    source: ir.Value
    kept: ir.Node


def find(scope: Scope) -> Iterator[Match]:
    yield from matches_of((n for n in scope.graph if is_standard(n, "Pad")), lambda node: _match(scope, node))


def _match(scope: Scope, pad: ir.Node) -> Match | None:
    rows = producer(pad.inputs[0], "Concat")
    columns = [_column(scope, part) for part in rows.inputs] if rows is not None else []
    if len(columns) < 3 or any(c is None for c in columns[:3]):
        return None
    by_kind = {c.kind: c for c in columns if c is not None}
    if set(by_kind) != {"boxes", "scores", "classes"}:
        return None
    box, score = by_kind["boxes"], by_kind["scores"]
    keep = box.kept.inputs[1]
    nms = producer(trail(keep)[-1], "NonMaxSuppression")
    if nms is None:
        return None

    def refused(why: str) -> Match:
        return Match(name_of(nms), [], [pad.outputs[0]], lambda b, i: [], 0, why)

    if len(columns) != 3:
        return refused("EfficientNMS_TRT has no output of indices, which other columns of the detections need")
    limit, output = _limit(keep), scope.shape(pad.outputs[0])
    threshold = _threshold(box.kept)
    overlap = scalar(nms.inputs[3]) if len(nms.inputs) > 3 else None
    extents, count = scope.shape(box.source), scope.shape(score.source)
    if limit is None or output != (limit, 6) or threshold is None or threshold < 0 or overlap is None:
        return refused("expected fixed thresholds and a fixed number of rows")
    if extents is None or count is None or len(count) != 3 or extents != (1, count[1], 4) or count[0] != 1:
        return refused("expected boxes [1, B, 4] and scores [1, B, C]")
    if score.source.dtype not in (None, ir.DataType.FLOAT) or by_kind["classes"].source is not score.source:
        return refused("expected scores of float32, and their classes")
    agnostic = _agnostic(nms)

    def build(b: Builder, given: list[ir.Value]) -> list[ir.Value]:
        boxes, scores = given
        best = b("Equal", b("ArgMax", scores, axis=2, keepdims=1), b.constant(np.arange(count[2])))
        of_best = b("Where", best, scores, b.constant(0, np.float32))
        attributes = {
            "score_threshold": above(threshold), "iou_threshold": above(overlap), "max_output_boxes": limit,
            "background_class": -1, "score_activation": 0, "box_coding": 0, "class_agnostic": int(agnostic),
        }  # fmt: skip
        _, kept, kept_scores, classes = b.node(NVIDIAS_NODE, [boxes, of_best], attributes, 4)
        parts = {
            "boxes": kept,
            "scores": b("Unsqueeze", kept_scores, b.constant([2])),
            "classes": b("Unsqueeze", b("Cast", classes, to=ir.DataType.FLOAT.value), b.constant([2])),
        }
        joined = b("Concat", *(parts[c.kind] for c in columns if c is not None), axis=2)
        return [b("Reshape", joined, b.constant([limit, 6]))]

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Returns boxes in the range of the model's own, because the file moves classes apart by their extent."""
        boxes, scores = arrays
        largest = float(np.abs(boxes).max(initial=0)) or 1.0
        corner = rng.uniform(0, 0.6, (*boxes.shape[:-1], 2))
        drawn = np.concatenate([corner, corner + rng.uniform(0.05, 0.4, corner.shape)], -1) * largest
        distinct = (rng.permutation(scores.size).reshape(scores.shape) + 0.5) / scores.size
        return [drawn.astype(boxes.dtype), distinct.astype(scores.dtype)]

    return Match(name_of(nms), [box.source, score.source], [pad.outputs[0]], build, 0, feeds=feeds)


def _column(scope: Scope, part: ir.Value) -> _Column | None:
    """Recognizes a part of the rows. Classes are cast to the type of the boxes."""
    moved = trail(part)
    cast = producer(moved[-1], "Cast")
    moved += trail(cast.inputs[0]) if cast is not None else []
    kept = next((n for v in moved if (n := producer(v, "Gather")) is not None and _is_kept(n.inputs[1])), None)
    if kept is None:
        return None
    largest = producer(moved[-1], "ReduceMax", "ArgMax")
    if largest is not None:
        return _Column("scores" if largest.op_type == "ReduceMax" else "classes", largest.inputs[0], kept)
    boxes = next((v for v in moved if (s := scope.shape(v)) is not None and len(s) == 3 and s[2] == 4), None)
    return _Column("boxes", boxes, kept) if boxes is not None else None


def _is_kept(index: ir.Value) -> bool:
    return producer(trail(index)[-1], "NonMaxSuppression") is not None


def _limit(keep: ir.Value) -> int | None:
    """Returns K of [:K], or None."""
    for value in trail(keep):
        cut = producer(value, "Slice")
        if cut is not None and scalar(cut.inputs[1]) == 0 and (end := scalar(cut.inputs[2])) is not None:
            return int(end)
    return None


def _threshold(kept: ir.Node) -> float | None:
    """Returns the threshold that the scores of the candidates exceed, or None."""
    chosen = producer(kept.inputs[0], "GatherND")
    where = producer(trail(chosen.inputs[1])[-1], "NonZero") if chosen is not None else None
    compared = producer(where.inputs[0], "Greater") if where is not None else None
    return scalar(compared.inputs[1]) if compared is not None else None


def _agnostic(nms: ir.Node) -> bool:
    """Returns False if numbers of classes are added to the boxes."""
    open_, seen = [nms.inputs[0]], 0
    while open_ and seen < _MAX_NODES:
        node = open_.pop(0).producer()
        seen += 1
        if is_standard(node, "Add"):
            return False
        if node is not None and not is_standard(node, "GatherND", "Shape"):
            open_ += [v for v in node.inputs if v is not None]
    return True
