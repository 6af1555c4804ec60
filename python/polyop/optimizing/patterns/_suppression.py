# SPDX-License-Identifier: Apache-2.0
"""Shared by the patterns of suppression in loops: polyop's nodes and test boxes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from polyop.optimizing.finding import Found
from polyop.optimizing.matching import Builder

NAME = "greedy suppression"
_NODE = "mmcv::NonMaxSuppression"


@dataclass
class Rule:
    threshold: float
    offset: int  # added to widths and heights
    removes_empty: bool  # the second of two boxes without area is suppressed, because their IoU is NaN


def rule_of(found: Found) -> Rule:
    return Rule(**{name: found.parameters[name] for name in ("threshold", "offset", "removes_empty")})


# ---- The replacement ----


def in_order(b: Builder, boxes: ir.Value) -> ir.Value:
    """Returns scores for boxes that are already sorted by descending score."""
    indices = b("Range", b.constant(0), b("Squeeze", b("Shape", boxes, end=1)), b.constant(1))
    return b("Neg", b("Cast", indices, to=ir.DataType.FLOAT.value))


def suppress(
    b: Builder, boxes: ir.Value, scores: ir.Value, rule: Rule, score_threshold: float | None = None
) -> ir.Value:
    """Returns the indices of the kept boxes with scores above the threshold, by descending score. Both are of f32."""
    zero, two, four, one = (b.constant([i]) for i in (0, 2, 4, 1))
    near, far = b("Slice", boxes, zero, two, one), b("Slice", boxes, two, four, one)
    # The function of standard operators sorts reversed corners, but here such boxes overlap with nothing.
    min_far = b("Sub", near, b.constant(rule.offset, np.float32)) if rule.offset else near
    upright = b("Concat", near, b("Max", far, min_far), axis=1)
    kept = b(_NODE, upright, scores, iou_threshold=rule.threshold, offset=rule.offset, score_threshold=score_threshold)
    if not rule.removes_empty:
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
    is_suppressed = b("And", is_empty, b("Greater", so_far, b.constant(1)))
    return b("Compress", kept, b("Not", is_suppressed), axis=0)


def in_f32(b: Builder, value: ir.Value) -> ir.Value:
    """Returns the tensor in f32, which polyop's node reads: ONNX Runtime's CPU provider computes f16 in f32, too."""
    return b("Cast", value, to=ir.DataType.FLOAT.value) if value.dtype == ir.DataType.FLOAT16 else value


def mask_of(b: Builder, indices: ir.Value, boxes: ir.Value) -> ir.Value:
    """Returns a mask that is True at the indices."""
    false, true = (ir.tensor(np.array([v])) for v in (False, True))
    none = b("ConstantOfShape", b("Shape", boxes, end=1), value=ir.Attr("value", ir.AttributeType.TENSOR, false))
    all_ = b("ConstantOfShape", b("Shape", indices), value=ir.Attr("value", ir.AttributeType.TENSOR, true))
    return b("ScatterElements", none, indices, all_, axis=0)


# ---- Values to compare with ----


def random_boxes(rng: np.random.Generator, like: np.ndarray, proper: bool = False, crowded: bool = False) -> np.ndarray:
    """Returns random boxes, many of which overlap and some are equal.

    proper: no box is reversed or without area.
    crowded: most boxes overlap.
    """
    count, columns = like.shape
    corner = rng.uniform(0, 4 if crowded else 4 * count**0.5, (count, 2))
    sides = rng.uniform(2, 20, (count, 2))
    if not proper:
        sides = np.where(rng.random((count, 1)) < 0.1, sides * rng.choice([0.0, -1.0], (count, 2)), sides)
    boxes = np.concatenate([corner, corner + sides, rng.random((count, columns - 4))], 1)
    again = rng.random(count) < 0.1
    boxes[again] = boxes[rng.permutation(count)][again]
    return boxes.astype(like.dtype)
