# SPDX-License-Identifier: Apache-2.0
"""The end of a YOLO file that Ultralytics exports with `nms=True`, as ops/boxes/patterns/padded_suppression.cc finds
it, for NVIDIA's EfficientNMS plugin.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from polyop.optimizing.finding import Found, find_pattern
from polyop.optimizing.matching import Builder, Match
from polyop.optimizing.patterns.efficient_nms import NAME, NVIDIAS_NODE, above
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

__all__ = ["NAME", "ORDER", "TARGETS", "find"]

ORDER = 49  # before single nodes of suppression
TARGETS = (Target.TENSORRT,)


def find(scope: Scope) -> Iterator[Match]:
    for found in find_pattern(scope, "padded suppression"):
        yield _match(found)


def _match(found: Found) -> Match:
    def build(b: Builder, inputs: list[ir.Value]) -> list[ir.Value]:
        boxes, scores = inputs
        given = found.parameters
        best = b("Equal", b("ArgMax", scores, axis=2, keepdims=1), b.constant(np.arange(given["classes"])))
        of_best = b("Where", best, scores, b.constant(0, np.float32))
        attributes = {
            "score_threshold": above(given["score_threshold"]), "iou_threshold": above(given["iou_threshold"]),
            "max_output_boxes": given["rows"], "background_class": -1, "score_activation": 0, "box_coding": 0,
            "class_agnostic": given["is_agnostic"],
        }  # fmt: skip
        _, kept, kept_scores, classes = b.node(NVIDIAS_NODE, [boxes, of_best], attributes, 4)
        parts = [
            kept,
            b("Unsqueeze", kept_scores, b.constant([2])),
            b("Unsqueeze", b("Cast", classes, to=ir.DataType.FLOAT.value), b.constant([2])),
        ]
        joined = b("Concat", *(parts[kind] for kind in given["kinds"]), axis=2)
        return [b("Reshape", joined, b.constant([given["rows"], 6]))]

    def feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Returns boxes in the range of the model's own, because the file moves classes apart by their extent."""
        boxes, scores = arrays
        largest = float(np.abs(boxes).max(initial=0)) or 1.0
        corner = rng.uniform(0, 0.6, (*boxes.shape[:-1], 2))
        drawn = np.concatenate([corner, corner + rng.uniform(0.05, 0.4, corner.shape)], -1) * largest
        distinct = (rng.permutation(scores.size).reshape(scores.shape) + 0.5) / scores.size
        return [drawn.astype(boxes.dtype), distinct.astype(scores.dtype)]

    return found.match(build, feeds)
