"""The mean average precision of detections at one IoU, as COCO defines it (101 recalls)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Integers = NDArray[np.integer]


@dataclass
class Detections:
    """The detected or the true objects of a scene."""

    boxes: Floats  # [n, 4], (x1, y1, x2, y2)
    labels: Integers  # [n]
    scores: Floats  # [n]; ignored for true objects


def ious(a: Floats, b: Floats) -> Floats:
    """Returns the IoU [n, m] of boxes [n, 4] and [m, 4]."""
    low, high = np.maximum(a[:, None, :2], b[:, :2]), np.minimum(a[:, None, 2:], b[:, 2:])
    shared = np.prod(np.maximum(high - low, 0), -1)
    return shared / np.maximum(_area(a)[:, None] + _area(b) - shared, 1e-6)


def _area(boxes: Floats) -> Floats:
    return np.prod(boxes[:, 2:] - boxes[:, :2], -1)


def mean_average_precision(truth: Sequence[Detections], found: Sequence[Detections], iou: float = 0.5) -> float:
    """Returns the average precision, averaged over the classes that have true objects."""
    classes = np.unique(np.concatenate([t.labels for t in truth]))
    return float(np.mean([_average_precision(truth, found, label, iou) for label in classes]))


def _average_precision(truth: Sequence[Detections], found: Sequence[Detections], label: int, iou: float) -> float:
    scores, correct = [], []
    for t, f in zip(truth, found, strict=True):
        order = np.argsort(-f.scores[f.labels == label], kind="stable")
        overlap = ious(f.boxes[f.labels == label][order], t.boxes[t.labels == label])
        scores.append(f.scores[f.labels == label][order])
        correct.append(_match(overlap, iou))
    order = np.argsort(-np.concatenate(scores), kind="stable")
    hits = np.cumsum(np.concatenate(correct)[order])
    recall = hits / sum(np.count_nonzero(t.labels == label) for t in truth)
    precision = hits / np.arange(1, len(hits) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]  # the best precision at this recall or a higher one
    at = np.searchsorted(recall, np.linspace(0, 1, 101))
    return float(np.append(precision, 0)[at].mean())


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
