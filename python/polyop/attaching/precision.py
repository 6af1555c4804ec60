# SPDX-License-Identifier: Apache-2.0
"""The mean average precision of detections at one IoU, as COCO defines it (101 recalls)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MAX_OF_A_SCENE = 100
Floats = NDArray[np.floating]
Integers = NDArray[np.integer]


@dataclass
class Detections:
    """The detected or the true objects of a scene."""

    boxes: Floats  # [n, 4], (x1, y1, x2, y2), or [n, 5], (cx, cy, width, height, angle in radians)
    labels: Integers  # [n]
    scores: Floats  # [n]; ignored for true objects
    crowd: NDArray[np.bool_] | None = None  # [n], of true objects: regions of many objects; None: there are none


def ious(a: Floats, b: Floats) -> Floats:
    """Returns the IoU [n, m] of boxes [n, 4] and [m, 4], or of rotated boxes [n, 5] and [m, 5]."""
    if a.shape[-1] == 5:
        from polyop.numpy import box_iou_rotated

        found = box_iou_rotated(a.astype(np.float32), b.astype(np.float32)) if len(a) and len(b) else None
        return np.zeros((len(a), len(b))) if found is None else found.reshape(len(a), len(b)).astype(np.float64)
    low, high = np.maximum(a[:, None, :2], b[:, :2]), np.minimum(a[:, None, 2:], b[:, 2:])
    shared = np.prod(np.maximum(high - low, 0), -1)
    return shared / np.maximum(_area(a)[:, None] + _area(b) - shared, 1e-6)


def _area(boxes: Floats) -> Floats:
    return np.prod(boxes[:, 2:] - boxes[:, :2], -1)


def mean_average_precision(truth: Sequence[Detections], found: Sequence[Detections], iou: float = 0.5) -> float:
    """Returns the average precision, averaged over the classes that have true objects; 0 if none has.

    Like COCO's, it counts the best 100 detections of a class in a scene.
    """
    classes = np.unique(np.concatenate([t.labels[~crowds(t)] for t in truth]))
    return float(np.mean([_average_precision(truth, found, label, iou) for label in classes])) if len(classes) else 0.0


def crowds(truth: Detections) -> NDArray[np.bool_]:
    """Returns which of the true objects are regions of many objects."""
    return np.zeros(len(truth.labels), bool) if truth.crowd is None else truth.crowd


def _average_precision(truth: Sequence[Detections], found: Sequence[Detections], label: int, iou: float) -> float:
    scores, correct = [], []
    for t, f in zip(truth, found, strict=True):
        order = np.argsort(-f.scores[f.labels == label], kind="stable")[:_MAX_OF_A_SCENE]
        of_label = Detections(f.boxes[f.labels == label][order], f.labels[f.labels == label][order], f.scores)
        right = _match(ious(of_label.boxes, t.boxes[(t.labels == label) & ~crowds(t)]), iou)
        counted = right | ~in_crowds(of_label, t, iou)
        scores.append(f.scores[f.labels == label][order][counted])
        correct.append(right[counted])
    order = np.argsort(-np.concatenate(scores), kind="stable")
    hits = np.cumsum(np.concatenate(correct)[order])
    recall = hits / sum(np.count_nonzero((t.labels == label) & ~crowds(t)) for t in truth)
    precision = hits / np.arange(1, len(hits) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]  # the best precision at this recall or a higher one
    at = np.searchsorted(recall, np.linspace(0, 1, 101))
    return float(np.append(precision, 0)[at].mean())


def in_crowds(found: Detections, truth: Detections, iou: float) -> NDArray[np.bool_]:
    """Returns which of the detections are in a region of many objects of their class, by at least this part."""
    crowd = crowds(truth)
    shares = _shares(found.boxes, truth.boxes[crowd])
    return np.where(found.labels[:, None] == truth.labels[crowd], shares, 0).max(1, initial=0) >= iou


def _shares(boxes: Floats, regions: Floats) -> Floats:
    """Returns the part [n, m] of each box that is inside of each region."""
    overlap = ious(boxes, regions)
    areas = [a[:, 2] * a[:, 3] if a.shape[-1] == 5 else _area(a) for a in (boxes, regions)]
    shared = overlap / (1 + overlap) * (areas[0][:, None] + areas[1])
    return shared / np.maximum(areas[0], 1e-6)[:, None]


def _match(overlap: Floats, iou: float) -> NDArray[np.bool_]:
    """Returns which detections, by descending score, are the first of a true object. A detection gets the object that
    it overlaps most among those that are left."""
    correct = np.zeros(len(overlap), bool)
    overlap = overlap.copy()
    for row in range(len(overlap) if overlap.shape[1] else 0):
        best = overlap[row].argmax()
        if overlap[row, best] >= iou:
            correct[row] = True
            overlap[:, best] = -1
    return correct
