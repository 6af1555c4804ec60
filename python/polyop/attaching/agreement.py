# SPDX-License-Identifier: Apache-2.0
"""How far the detections of two models agree: matched by class and IoU, and as a mean average precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyop.attaching.drawing import Detection
from polyop.attaching.errors import AttachError
from polyop.attaching.precision import Detections, crowds, in_crowds, ious, mean_average_precision
from polyop.attaching.truth import TrueObject

_COCO_IOUS = np.arange(0.5, 1, 0.05)


@dataclass(frozen=True)
class PhotoAgreement:
    """The detections of a photo: those of the reference, of the model, and the pairs of both.

    moves: for each pair, how far the corner of a box that moved most moved, in pixels.
    """

    expected: int
    found: int
    matched: int
    moves: tuple[float, ...] = ()

    @property
    def differing(self) -> int:
        return self.expected + self.found - 2 * self.matched

    @property
    def moved(self) -> int:
        """The number of pairs whose boxes moved by more than a pixel."""
        return sum(move > 1 for move in self.moves)


@dataclass(frozen=True)
class Agreement:
    """average_precision: at the IoU of the matches; coco_precision: averaged over the IoUs 0.5, 0.55, … 0.95. The
    reference's detections count as the true objects."""

    photos: tuple[PhotoAgreement, ...]
    average_precision: float
    coco_precision: float


def compare(expected: Sequence[Sequence[Detection]], found: Sequence[Sequence[Detection]], iou: float) -> Agreement:
    """Compares the detections of photos. Raises AttachError if some boxes are rotated and others are not.

    expected: the detections of another model, or true objects; crowds among these only excuse detections.
    """
    widths = {len(d.box) for photos in (expected, found) for of_photo in photos for d in of_photo}
    if len(widths) > 1:
        raise AttachError("expected boxes of one kind, got boxes of two corners and rotated boxes")
    width = widths.pop() if widths else 4
    truth, given = ([_arrays(of_photo, width) for of_photo in photos] for photos in (expected, found))
    photos = tuple(
        _of_photo(t, g, iou, [_outlines(of_photo) for of_photo in pair])
        for t, g, *pair in zip(truth, given, expected, found, strict=True)
    )
    coco = float(np.mean([_precision(truth, given, float(at)) for at in _COCO_IOUS]))
    return Agreement(photos, _precision(truth, given, iou), coco)


def _arrays(found: Sequence[Detection], width: int) -> Detections:
    boxes = np.array([d.box for d in found], np.float64).reshape(-1, width)
    crowd = np.array([isinstance(d, TrueObject) and d.crowd for d in found], bool)
    return Detections(boxes, np.array([d.label for d in found], np.int64), np.array([d.score for d in found]), crowd)


def _precision(truth: Sequence[Detections], found: Sequence[Detections], iou: float) -> float:
    if not any(len(t.scores) for t in truth):
        return 0.0 if any(len(f.scores) for f in found) else 1.0
    return mean_average_precision(truth, found, iou)


def _outlines(found: Sequence[Detection]) -> list[np.ndarray]:
    return [np.array(detection.outline()) for detection in found]


def _move(a: np.ndarray, b: np.ndarray) -> float:
    """Returns the largest distance of a corner from the other's nearest: a rotated box may begin with any of them."""
    apart = np.hypot(*(a[:, None] - b).transpose(2, 0, 1))
    return float(max(apart.min(0).max(), apart.min(1).max()))


def _of_photo(
    truth: Detections, found: Detections, iou: float, corners: Sequence[Sequence[np.ndarray]]
) -> PhotoAgreement:
    """Pairs objects of a class whose IoU is at least `iou`: the pairs that overlap most come first."""
    overlap, excused = ious(truth.boxes, found.boxes), in_crowds(found, truth, iou)
    overlap[truth.labels[:, None] != found.labels] = -1
    overlap[crowds(truth)] = -1
    moves = []
    while overlap.size and overlap.max() >= iou:
        row, column = map(int, np.unravel_index(overlap.argmax(), overlap.shape))
        overlap[row], overlap[:, column], excused[column] = -1, -1, False
        moves.append(_move(corners[0][row], corners[1][column]))
    return PhotoAgreement(int((~crowds(truth)).sum()), int((~excused).sum()), len(moves), tuple(moves))
