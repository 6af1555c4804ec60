# SPDX-License-Identifier: Apache-2.0
"""Suppression that NVIDIA's EfficientNMS plugin computes: nodes of other plugins become EfficientNMS_TRT.

MMDeploy's TRTBatchedNMS keeps boxes whose scores and IoUs exceed thresholds that NVIDIA's plugin includes: the next
greater numbers of float32 select the same boxes. Its `topk` candidates of each class are selected by TopK.

ONNX's NonMaxSuppression returns indices, as many as there are boxes, which NVIDIA's plugin cannot. TensorRT has a layer
for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx_ir as ir

from polyop._onnx.catalogue import resolve
from polyop.optimizing.graph import is_read, is_standard
from polyop.optimizing.matching import Builder, Match, matches_of, name_of
from polyop.optimizing.scope import Scope
from polyop.optimizing.target import Target

NAME = "batched suppression"
ORDER = 50
TARGETS = (Target.TENSORRT,)
NVIDIAS_NODE = "::EfficientNMS_TRT"
_MAX_ROWS = 5000  # of NVIDIA's plugin, which visits as many candidates
_OF_PLUGIN = (
    "score_threshold", "iou_threshold", "max_output_boxes", "background_class", "score_activation", "box_coding",
    "class_agnostic",
)  # fmt: skip


def find(scope: Scope) -> Iterator[Match]:
    yield from matches_of(scope.graph, lambda node: _match(scope, node))


def _match(scope: Scope, node: ir.Node) -> Match | None:
    if is_standard(node, "NonMaxSuppression"):
        why = "EfficientNMS_TRT returns no indices; TensorRT has a layer for it"
        return Match(name_of(node), [], [], lambda b, i: [], 0, why, what="NonMaxSuppression")
    if not node.domain:  # NVIDIA's own nodes
        return None
    found = resolve(node.domain, node.op_type, {n: a.value for n, a in node.attributes.items()})
    build = _BUILDERS.get(found.operator["name"]) if found is not None and found.operator is not None else None
    if found is None or build is None or found.error:
        return None
    given, read = found.values, list(node.inputs)
    inputs = list(dict.fromkeys(v for v in read if v is not None))
    used = [i for i, v in enumerate(node.outputs) if is_read(v)]

    def nodes(b: Builder, now: list[ir.Value]) -> list[ir.Value]:
        known = dict(zip(inputs, now, strict=True))
        results = build(b, [known[v] if v is not None else None for v in read], given, scope)
        return [results[i] for i in used]

    outputs = [node.outputs[i] for i in used]
    return Match(name_of(node), inputs, outputs, nodes, 0, _refused(node, outputs, given), feeds=_feeds)


def _refused(node: ir.Node, outputs: list[ir.Value], given: dict[str, Any]) -> str:
    """Returns why NVIDIA's plugin cannot compute the node, or ""."""
    rows = given.get("max_output_boxes", given.get("keep_topk", 0))
    is_batched = "keep_topk" in given
    if any(v in outputs for v in node.outputs[2 if is_batched else 4 :]):
        return "EfficientNMS_TRT has no output of indices"
    if not 1 <= rows <= _MAX_ROWS:
        return f"EfficientNMS_TRT returns 1 to {_MAX_ROWS} rows, expected {rows}"
    if given["score_threshold"] < 0:
        return f"EfficientNMS_TRT has no threshold of scores below 0, expected {given['score_threshold']:g}"
    return ""


def _renamed(b: Builder, inputs: list[ir.Value | None], given: dict[str, Any], scope: Scope) -> list[ir.Value]:
    """Writes a node of EfficientNMS under NVIDIA's name."""
    return b.node(NVIDIAS_NODE, inputs, {name: given[name] for name in _OF_PLUGIN}, 4)


def _batched(b: Builder, inputs: list[ir.Value | None], given: dict[str, Any], scope: Scope) -> list[ir.Value]:
    """Writes MMDeploy's TRTBatchedNMS: dets [N, K, 5] and labels [N, K], -1 in rows that are not in use."""
    boxes, scores = inputs
    assert boxes is not None  # both are required
    assert scores is not None
    shape = scope.shape(scores)
    if given["topk"] > 0 and (shape is None or given["topk"] < shape[1] or not scope.sizes_are_fixed):
        boxes, scores = _best_of_each_class(b, boxes, scores, given["topk"])
    attributes = {
        "score_threshold": above(given["score_threshold"]),
        "iou_threshold": above(given["iou_threshold"]),
        "max_output_boxes": given["keep_topk"],
        "background_class": given["background_label_id"],
        "score_activation": 0,
        "box_coding": 0,
        "class_agnostic": 0,
    }
    number, kept, kept_scores, classes = b.node(NVIDIAS_NODE, [boxes, scores], attributes, 4)
    if given["clip_boxes"]:
        kept = b("Clip", kept, b.constant(0, np.float32), b.constant(1, np.float32))
    dets = b("Concat", kept, b("Unsqueeze", kept_scores, b.constant([2])), axis=2)
    rows = b.constant(np.arange(given["keep_topk"]), np.int32)
    return [dets, b("Where", b("Less", rows, number), classes, b.constant(-1, np.int32))]


def above(threshold: float) -> float:
    """Returns the next greater number of float32: a number exceeds the threshold if it is at least as great."""
    return float(np.nextafter(np.float32(threshold), np.float32(np.inf)))


def _best_of_each_class(b: Builder, boxes: ir.Value, scores: ir.Value, count: int) -> tuple[ir.Value, ir.Value]:
    """Returns boxes [N, K, C, 4] and scores [N, K, C] of the best boxes of each class."""
    extents = b("Shape", scores)
    limit = b("Min", b.constant([count]), b("Slice", extents, b.constant([1]), b.constant([2])))
    best, index = b.node("TopK", [scores, limit], {"axis": 1}, 2)
    of_classes = b("Expand", boxes, b("Concat", extents, b.constant([1]), axis=0))
    coordinates = b("Expand", b("Unsqueeze", index, b.constant([3])), b.constant([1, 1, 1, 4]))
    return b("GatherElements", of_classes, coordinates, axis=1), best


def _feeds(rng: np.random.Generator, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Returns boxes, many of which overlap, and distinct scores."""
    boxes, scores, *rest = arrays
    corner = rng.uniform(0, 0.5, (*boxes.shape[:-1], 2))
    drawn = np.concatenate([corner, corner + rng.uniform(0.1, 0.5, corner.shape)], -1)
    distinct = (rng.permutation(scores.size).reshape(scores.shape) + 0.5) / max(scores.size, 1)
    return [drawn.astype(boxes.dtype), distinct.astype(scores.dtype), *rest]


_BUILDERS = {"efficient_nms": _renamed, "batched_nms": _batched}
