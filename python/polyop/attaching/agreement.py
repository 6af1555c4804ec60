"""How far the detections of two models agree: matched by class and IoU, and as a mean average precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyop.attaching.drawing import Detection
from polyop.attaching.errors import AttachError
from polyop.attaching.precision import Detections, ious, mean_average_precision

_COCO_IOUS = np.arange(0.5, 1, 0.05)


@dataclass(frozen=True)
class PhotoAgreement:
    """The detections of a photo: those of the reference, of the model, and the pairs of both."""

    expected: int
    found: int
    matched: int

    @property
    def differing(self) -> int:
        return self.expected + self.found - 2 * self.matched


@dataclass(frozen=True)
class Agreement:
    """average_precision: at the IoU of the matches; coco_precision: averaged over the IoUs 0.5, 0.55, … 0.95. The
    reference's detections count as the true objects."""

    photos: tuple[PhotoAgreement, ...]
    average_precision: float
    coco_precision: float


def compare(expected: Sequence[Sequence[Detection]], found: Sequence[Sequence[Detection]], iou: float) -> Agreement:
    """Compares the detections of photos. Raises AttachError for rotated boxes."""
    truth, given = ([_arrays(of_photo) for of_photo in photos] for photos in (expected, found))
    photos = tuple(
        PhotoAgreement(len(t.scores), len(g.scores), _matched(t, g, iou)) for t, g in zip(truth, given, strict=True)
    )
    coco = float(np.mean([_precision(truth, given, float(at)) for at in _COCO_IOUS]))
    return Agreement(photos, _precision(truth, given, iou), coco)


def _arrays(found: Sequence[Detection]) -> Detections:
    if any(len(d.box) != 4 for d in found):
        raise AttachError("expected boxes of two corners, got rotated boxes, which are not compared")
    boxes = np.array([d.box for d in found], np.float64).reshape(-1, 4)
    return Detections(boxes, np.array([d.label for d in found], np.int64), np.array([d.score for d in found]))


def _precision(truth: Sequence[Detections], found: Sequence[Detections], iou: float) -> float:
    if not any(len(t.scores) for t in truth):
        return 0.0 if any(len(f.scores) for f in found) else 1.0
    return mean_average_precision(truth, found, iou)


def _matched(truth: Detections, found: Detections, iou: float) -> int:
    """Returns the number of pairs of a class whose IoU is at least `iou`: the pairs that overlap most come first."""
    overlap = ious(truth.boxes, found.boxes)
    overlap[truth.labels[:, None] != found.labels] = -1
    count = 0
    while overlap.size and overlap.max() >= iou:
        row, column = np.unravel_index(overlap.argmax(), overlap.shape)
        overlap[row], overlap[:, column] = -1, -1
        count += 1
    return count
