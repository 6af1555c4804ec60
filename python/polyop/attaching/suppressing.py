# SPDX-License-Identifier: Apache-2.0
"""The nodes behind decoded boxes: suppression, and the outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from polyop import formulas
from polyop.attaching.decoding import Decoded
from polyop.attaching.nodes import Nodes
from polyop.formulas import Call

NODE = "polyop::EfficientNMS_TRT"
ROTATED_NODE = "mmdeploy::TRTBatchedRotatedNMS"
SOFT_NODE = "mmcv::SoftNonMaxSuppression"
SOFT_METHODS = {"linear": 1, "gaussian": 2}
"""The codes of SOFT_NODE."""
_NOT_A_CANDIDATE = -1.0  # a score below every threshold
THRESHOLDS = ("score_threshold", "iou_threshold", "max_detections")
"""The names of graph inputs, which have default values."""
_IN_THE_BODY = {"probability": THRESHOLDS[0], "threshold": THRESHOLDS[1], "limit": THRESHOLDS[2]}


@dataclass(frozen=True)
class Rules:
    """How detections are chosen.

    classes: only these, or None. best_class: a box has its best class only. as_inputs: the thresholds and the maximum
    are inputs of the graph. soft: one of SOFT_METHODS, by which overlapping boxes get lower scores, or None.
    """

    score: float
    iou: float
    max_detections: int
    agnostic: bool
    best_class: bool
    classes: tuple[int, ...] | None
    background: int
    as_inputs: bool
    soft: str | None = None
    sigma: float = 0.5


@dataclass(frozen=True)
class Detections:
    """Names of values: EfficientNMS' outputs, and the numbers of the boxes, or "". valid: a mask of the rows in use."""

    number: str
    boxes: str
    scores: str
    labels: str
    numbers: str
    valid: str


def suppress(b: Nodes, decoded: Decoded, rules: Rules, count: int | None, rotated: bool) -> Detections:
    """Writes the suppression of boxes of `count` classes, or the choice among suppressed ones."""
    if decoded.labels:
        return _chosen(b, decoded, rules)
    assert count is not None  # heads with a score per class have it
    scores = _of_classes(b, decoded.scores, rules, count)
    if rotated:
        return _rotated(b, decoded.boxes, scores, rules)
    if rules.soft:
        return _soft(b, decoded.boxes, scores, rules, SOFT_METHODS[rules.soft])
    results = (_as_standard_nodes if rules.as_inputs else _as_node)(b, decoded.boxes, scores, rules)
    number, kept, kept_scores, labels, numbers = results
    return Detections(number, kept, kept_scores, labels, numbers, _rows_below(b, number, kept_scores))


def _rows_below(b: Nodes, number: str, rows: str) -> str:
    """Returns a mask [N, K] of the first `number` rows [N, 1]."""
    row = b("Range", b.constant(0), b("Squeeze", b.extents(rows, 1, 2)), b.constant(1))
    return b("Less", row, b.cast(number, TensorProto.INT64))


def _of_classes(b: Nodes, scores: str, rules: Rules, count: int) -> str:
    """Returns scores [N, B, C], those that are no candidates lowered."""
    allowed = np.ones(count, bool)
    if rules.classes is not None:
        allowed[:] = False
        allowed[list(rules.classes)] = True
    candidates = [b.constant(allowed, bool)] if not allowed.all() else []
    if rules.best_class and count > 1:
        best = b("ArgMax", scores, axis=2, keepdims=1)
        candidates.append(b("Equal", best, b.constant(range(count))))
    for mask in candidates:
        scores = b("Where", mask, scores, b.real(_NOT_A_CANDIDATE))
    return scores


def _as_node(b: Nodes, boxes: str, scores: str, rules: Rules) -> list[str]:
    return b.several(
        NODE, [boxes, scores], 5, score_threshold=rules.score, iou_threshold=rules.iou,
        max_output_boxes=rules.max_detections, background_class=rules.background, score_activation=0, box_coding=0,
        class_agnostic=int(rules.agnostic),
    )  # fmt: skip


def _as_standard_nodes(b: Nodes, boxes: str, scores: str, rules: Rules) -> list[str]:
    """Writes the nodes of the function of EfficientNMS, with graph inputs as thresholds."""
    module = formulas.find("efficient_nms")
    assert module is not None  # it is polyop's own
    text = module.body(
        Call(b.opset, ("boxes", "scores"), (3, 3)), score_threshold=rules.score, iou_threshold=rules.iou,
        max_output_boxes=rules.max_detections, background_class=rules.background, score_activation=False,
        box_coding="corners", class_agnostic=rules.agnostic,
    )  # fmt: skip
    results = ["num_detections", *(f"detection_{what}" for what in ("boxes", "scores", "classes", "indices"))]
    header = f'<opset_import: ["" : {b.opset}], domain: "polyop">\nBody (boxes, scores) => ({", ".join(results)})'
    known = {"boxes": boxes, "scores": scores, "": "", **_IN_THE_BODY}
    body = list(onnx.parser.parse_function(f"{header} {{ {text} }}").node)
    for node in body:
        if node.output[0] in _IN_THE_BODY:
            continue
        node.input[:] = [known.get(name, f"{b.prefix}/suppression/{name}") for name in node.input]
        node.output[:] = [f"{b.prefix}/suppression/{name}" for name in node.output]
        node.name = node.output[0]
        b.nodes.append(node)
    return [f"{b.prefix}/suppression/{name}" for name in results]


def threshold_inputs(rules: Rules) -> list[onnx.TensorProto]:
    """Returns the default values of the graph inputs."""
    return [
        numpy_helper.from_array(np.array(rules.score, np.float32), THRESHOLDS[0]),
        numpy_helper.from_array(np.array(rules.iou, np.float32), THRESHOLDS[1]),
        numpy_helper.from_array(np.array([rules.max_detections], np.int64), THRESHOLDS[2]),
    ]


def _rotated(b: Nodes, boxes: str, scores: str, rules: Rules) -> Detections:
    """Writes the suppression of rotated boxes, for which no standard operator exists."""
    dets, labels = b.several(
        ROTATED_NODE, [b("Unsqueeze", boxes, b.constant([2])), scores], 2, background_label_id=rules.background,
        topk=-1, keep_topk=rules.max_detections, score_threshold=rules.score, iou_threshold=rules.iou, clip_boxes=0,
        is_normalized=0,
    )  # fmt: skip
    valid = b("GreaterOrEqual", labels, b.constant(0, np.int32))
    number = b("ReduceSum", b.cast(valid, TensorProto.INT32), b.constant([1]), keepdims=1)
    scores = b("Squeeze", b.columns(dets, 5, 6), b.constant([-1]))
    return Detections(number, b.columns(dets, 0, 5), scores, b("Max", labels, b.constant(0, np.int32)), "", valid)


def _lowered(b: Nodes, boxes: str, scores: str, _: str, rules: Rules, method: int) -> tuple[str, str]:
    """Writes the suppression of boxes. Returns the numbers of those that are kept, and their scores."""
    dets, kept = b.several(
        SOFT_NODE, [boxes, scores], 2, iou_threshold=rules.iou, sigma=rules.sigma, min_score=rules.score,
        method=method, offset=0,
    )  # fmt: skip
    return kept, b("Squeeze", b.columns(dets, 4, 5), b.constant([1]))


def _lowered_by_class(b: Nodes, boxes: str, scores: str, labels: str, rules: Rules, method: int) -> tuple[str, str]:
    """Writes a loop over the classes of boxes: boxes that are moved apart by class would be rounded."""
    name = f"{b.prefix}/classes"
    inputs = [
        helper.make_tensor_value_info(f"{name}/{what}", kind, shape)
        for what, kind, shape in (
            ("number", TensorProto.INT64, []),
            ("go", TensorProto.BOOL, []),
            ("kept", TensorProto.INT64, [None]),
            ("scores", TensorProto.FLOAT, [None]),
        )
    ]
    number, go, kept, lowered = (value.name for value in inputs)
    classes = b("Unique", labels)
    body = Nodes(b.opset, name)
    members = body("NonZero", body("Equal", labels, body("Gather", classes, number)))
    members = body("Squeeze", members, body.constant([0]))
    class_boxes, class_scores = (body("Gather", value, members, axis=0) for value in (boxes, scores))
    rows, class_scores = _lowered(body, class_boxes, class_scores, labels, rules, method)
    results = [
        body("Identity", go),
        body.concat(kept, body("Gather", members, rows), axis=0),
        body.concat(lowered, class_scores, axis=0),
    ]
    outputs = [
        helper.make_tensor_value_info(result, value.type.tensor_type.elem_type, [None] * min(i, 1))
        for i, (result, value) in enumerate(zip(results, inputs[1:], strict=True))
    ]
    graph = helper.make_graph(body.nodes, f"{name}/body", inputs, outputs)
    count = b("Squeeze", b("Shape", classes))
    started = [b.constant([]), b.constant([], np.float32)]
    kept, lowered = b.several("Loop", [count, "", *started], 2, body=graph)
    # Of equal scores, the box of the lowest number comes first.
    total = b("Shape", kept)
    kept, order = b.several("TopK", [kept, total], 2, axis=0, largest=0)
    lowered, order = b.several("TopK", [b("Gather", lowered, order), total], 2, axis=0)
    return b("Gather", kept, order), lowered


def _soft(b: Nodes, boxes: str, scores: str, rules: Rules, method: int) -> Detections:
    """Writes soft suppression for one image: of all boxes if `agnostic`, or else of those of each class."""
    first = b.constant([0])
    boxes, scores = b("Squeeze", boxes, first), b("Squeeze", scores, first)
    candidates = b("GreaterOrEqual", scores, b.real(rules.score))
    if rules.background >= 0:
        label = b("Range", b.constant(0), b("Squeeze", b.extents(scores, 1, 2)), b.constant(1))
        candidates = b("And", candidates, b("Not", b("Equal", label, b.constant(rules.background))))
    indices = b("Transpose", b("NonZero", candidates), perm=[1, 0])
    numbers, labels = (b("Squeeze", b.columns(indices, i, i + 1), b.constant([1])) for i in (0, 1))
    candidate_boxes, candidate_scores = b("Gather", boxes, numbers, axis=0), b("GatherND", scores, indices)
    write = _lowered if rules.agnostic else _lowered_by_class
    kept, lowered = write(b, candidate_boxes, candidate_scores, labels, rules, method)
    count = b("Min", b("Shape", kept), b.constant([rules.max_detections]))

    def in_rows(values: str, width: int, kind: type) -> str:
        """Returns [1, K] or [1, K, width]: the rows of values, then zeros, as many as the maximum."""
        none = b.constant(np.zeros((rules.max_detections, width) if width else rules.max_detections), kind)
        filled = b.columns(b("Concat", values, none, axis=0), 0, rules.max_detections, axis=0)
        return b("Unsqueeze", filled, first)

    rows = in_rows(lowered, 0, np.float32)
    number = b.cast(b("Unsqueeze", count, first), TensorProto.INT32)
    return Detections(
        number,
        in_rows(b("Gather", candidate_boxes, kept, axis=0), 4, np.float32),
        rows,
        b.cast(in_rows(b("Gather", labels, kept), 0, np.int64), TensorProto.INT32),
        in_rows(b("Gather", numbers, kept), 0, np.int64),
        _rows_below(b, number, rows),
    )


def _chosen(b: Nodes, decoded: Decoded, rules: Rules) -> Detections:
    """Writes the choice of the best detections of a model that suppresses."""
    minimum = THRESHOLDS[0] if rules.as_inputs else b.real(rules.score)
    limit = THRESHOLDS[2] if rules.as_inputs else b.constant([rules.max_detections])
    candidates = b("GreaterOrEqual", decoded.scores, minimum)
    candidates = b("And", candidates, b("GreaterOrEqual", decoded.labels, b.constant(0)))
    if rules.classes is not None:
        allowed = b("Equal", b("Unsqueeze", decoded.labels, b.constant([-1])), b.constant(rules.classes))
        any_of_them = b.extreme("ReduceMax", b.cast(allowed, TensorProto.INT64), 2, keepdims=False)
        candidates = b("And", candidates, b.cast(any_of_them, TensorProto.BOOL))
    open_scores = b("Where", candidates, decoded.scores, b.real(_NOT_A_CANDIDATE))
    rows = b("Min", limit, b.extents(decoded.scores, 1, 2))
    scores, numbers = b.several("TopK", [open_scores, rows], 2, axis=1)
    valid = b("GreaterOrEqual", scores, b.real(0))
    number = b("ReduceSum", b.cast(valid, TensorProto.INT32), b.constant([1]), keepdims=1)
    labels = b.cast(b.rows(decoded.labels, numbers), TensorProto.INT32)
    return Detections(
        number,
        b.rows(decoded.boxes, numbers),
        b("Where", valid, scores, b.real(0)),
        b("Where", valid, labels, b.constant(0, np.int32)),
        numbers,
        valid,
    )


def where_valid(b: Nodes, valid: str, value: str, rank: int) -> str:
    """Returns a value [N, K, ...] of this rank whose rows that are not in use are 0."""
    mask = b("Unsqueeze", valid, b.constant(range(2, rank))) if rank > 2 else valid
    return b("Where", mask, value, b("CastLike", b.real(0), value))


def in_use(b: Nodes, valid: str, value: str) -> str:
    """Returns the rows in use [D, ...] of a value [N, K, ...]."""
    return b("GatherND", value, b("Transpose", b("NonZero", valid), perm=[1, 0]))


def value_infos(rules: Rules) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in threshold_inputs(rules)]
