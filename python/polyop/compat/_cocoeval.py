# SPDX-License-Identifier: Apache-2.0
"""COCOeval's functions of `detectron2._C`, in NumPy: matches of all thresholds and area ranges at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["COCOevalAccumulate", "COCOevalEvaluateImages", "ImageEvaluation", "InstanceAnnotation"]


@dataclass(slots=True)
class InstanceAnnotation:
    """An object of an image, annotated or detected."""

    id: int
    score: float
    area: float
    is_crowd: bool
    ignore: bool


def _none() -> np.ndarray:
    return np.zeros(0)


@dataclass(slots=True)
class ImageEvaluation:
    """The matches of an image, for one category and one area range."""

    detection_matches: np.ndarray = field(default_factory=_none)
    """The id of the matched annotation, 0 without one: [thresholds, detections]."""
    detection_scores: np.ndarray = field(default_factory=_none)
    ground_truth_ignores: np.ndarray = field(default_factory=_none)
    detection_ignores: np.ndarray = field(default_factory=_none)
    """[thresholds, detections]."""


def COCOevalEvaluateImages(  # noqa: N802
    area_ranges: Sequence[Sequence[float]],
    max_detections: int,
    iou_thresholds: Sequence[float],
    image_category_ious: Sequence[Sequence[Any]],
    image_category_ground_truth_instances: Sequence[Sequence[Sequence[InstanceAnnotation]]],
    image_category_detection_instances: Sequence[Sequence[Sequence[InstanceAnnotation]]],
) -> list[ImageEvaluation]:
    """Matches detections with annotations, as COCOeval.evaluateImg does. Overlaps are indexed by image, category,
    detection and annotation, detections by descending score. The results are ordered by category, area range and image.
    """
    ranges = np.asarray(area_ranges, np.float64).reshape(-1, 2)
    thresholds = np.minimum(np.asarray(iou_thresholds, np.float64), 1 - 1e-10)
    images = len(image_category_ground_truth_instances)
    categories = len(image_category_ious[0]) if image_category_ious else 0
    results = [ImageEvaluation()] * (categories * len(ranges) * images)
    for i in range(images):
        for c in range(categories):
            evaluations = _match(
                image_category_detection_instances[i][c],
                image_category_ground_truth_instances[i][c],
                image_category_ious[i][c],
                thresholds,
                ranges,
                max_detections,
            )
            results[(c * len(ranges)) * images + i : (c + 1) * len(ranges) * images : images] = evaluations
    return results


def _array(instances: Sequence[InstanceAnnotation], name: str, dtype: type) -> np.ndarray:
    return np.array([getattr(instance, name) for instance in instances], dtype)


def _match(
    detections: Sequence[InstanceAnnotation],
    annotations: Sequence[InstanceAnnotation],
    ious: Any,
    thresholds: np.ndarray,
    ranges: np.ndarray,
    max_detections: int,
) -> list[ImageEvaluation]:
    """Returns an evaluation per area range."""
    scores = _array(detections, "score", np.float64)
    order = np.argsort(-scores, kind="stable")[:max_detections]
    of_detection, area = _array(detections, "id", np.int64)[order], _array(detections, "area", np.float64)[order]
    of_annotation, size = _array(annotations, "id", np.int64), _array(annotations, "area", np.float64)
    crowd = _array(annotations, "is_crowd", bool)
    low, high = ranges[:, :1], ranges[:, 1:]
    ignored = _array(annotations, "ignore", bool) | (size < low) | (size > high)  # [ranges, annotations]
    count, limits = len(annotations), np.tile(thresholds, len(ranges))
    rows = np.arange(len(limits))  # range * thresholds + threshold
    matches = np.zeros((len(limits), len(order)), np.int64)
    ignores = np.zeros((len(limits), len(order)), bool)
    if count > 0 and len(order) > 0:
        overlaps = np.asarray(ious, np.float64)
        if overlaps.ndim != 2 or overlaps.shape[0] < len(order) or overlaps.shape[1] != count:
            raise ValueError(
                f"COCOevalEvaluateImages: expected overlaps [{len(order)}, {count}], got {list(overlaps.shape)}"
            )
        out = np.repeat(ignored, len(thresholds), 0)
        taken = np.zeros((len(limits), count), np.int64)
        for d in range(len(order)):
            candidates = np.where((taken > 0) & ~crowd, -1, overlaps[d])
            # Among equal overlaps the last annotation counts; ignored ones only where no other is near enough.
            best = _last_maximum(np.where(out, -1, candidates))
            near = candidates[rows, best] >= limits
            near &= ~out[rows, best]
            other = _last_maximum(np.where(out, candidates, -1))
            best = np.where(near, best, other)
            found = (candidates[rows, best] >= limits) & (near | out[rows, best])
            matches[found, d] = of_annotation[best[found]]
            ignores[found, d] = out[found, best[found]]
            taken[rows[found], best[found]] = of_detection[d]
    outside = np.repeat((area < low) | (area > high), len(thresholds), 0)
    ignores |= (matches == 0) & outside
    shape = (len(ranges), len(thresholds), len(order))
    return [
        ImageEvaluation(of_range, scores[order], np.sort(gone), skipped)
        for of_range, gone, skipped in zip(matches.reshape(shape), ignored, ignores.reshape(shape), strict=True)
    ]


def _last_maximum(values: np.ndarray) -> np.ndarray:
    return values.shape[1] - 1 - values[:, ::-1].argmax(1)


def COCOevalAccumulate(params: Any, evaluations: Sequence[ImageEvaluation]) -> dict[str, Any]:  # noqa: N802
    """Returns precision, recall and scores as flat lists, and their extents as "counts", like COCOeval.accumulate."""
    recall_thresholds = np.asarray(params.recThrs, np.float64)
    counts = [
        len(params.iouThrs),
        len(recall_thresholds),
        len(params.catIds) if params.useCats == 1 else 1,
        len(params.areaRng),
        len(params.maxDets),
    ]
    thresholds, _, categories, ranges, _ = counts
    images = len(params.imgIds)
    if len(evaluations) != categories * ranges * images:
        raise ValueError(
            f"COCOevalAccumulate: expected {categories * ranges * images} evaluations, got {len(evaluations)}"
        )
    precision, scores = np.full(counts, -1.0), np.full(counts, -1.0)
    recall = np.full([thresholds, *counts[2:]], -1.0)
    for c in range(categories):
        for a in range(ranges):
            first = (c * ranges + a) * images
            of_images = evaluations[first : first + images]
            expected = sum(int((~e.ground_truth_ignores.astype(bool)).sum()) for e in of_images)
            if expected == 0:
                continue
            for m, most in enumerate(params.maxDets):
                found = np.concatenate([e.detection_scores[:most] for e in of_images])
                order = np.argsort(-found, kind="stable")
                matched = np.concatenate([e.detection_matches[:, :most] for e in of_images], 1)[:, order] > 0
                counted = ~np.concatenate([e.detection_ignores[:, :most] for e in of_images], 1)[:, order].astype(bool)
                right, wrong = (matched & counted).cumsum(1), (~matched & counted).cumsum(1)
                total = right + wrong
                recalls = right / expected
                precisions = np.divide(right, total, out=np.zeros(total.shape), where=total > 0)
                precisions = np.maximum.accumulate(precisions[:, ::-1], 1)[:, ::-1]
                recall[:, c, a, m] = recalls[:, -1] if len(order) else 0
                for t in range(thresholds):
                    at = np.searchsorted(recalls[t], recall_thresholds)
                    reached = at < len(order)
                    precision[t, :, c, a, m] = scores[t, :, c, a, m] = 0
                    precision[t, reached, c, a, m] = precisions[t, at[reached]]
                    scores[t, reached, c, a, m] = found[order[at[reached]]]
    return {
        "params": params,
        "counts": counts,
        "date": time.strftime("%Y-%m-%d %H:%M:%S"),
        "precision": precision.flatten().tolist(),
        "recall": recall.flatten().tolist(),
        "scores": scores.flatten().tolist(),
    }
