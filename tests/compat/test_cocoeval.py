# SPDX-License-Identifier: Apache-2.0
"""COCOeval's functions of detectron2._C, compared with pycocotools."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from polyop.compat import _cocoeval as ours
from tests.support.processes import ROOT


@pytest.fixture
def pycocotools(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    folder = ROOT / ".deps" / "openmmlab"
    assert (folder / "pycocotools").is_dir(), f"{folder}/pycocotools is missing: run tools/setup.sh"
    monkeypatch.syspath_prepend(str(folder))
    import pycocotools.coco
    import pycocotools.cocoeval

    yield pycocotools
    for name in [name for name in sys.modules if name.partition(".")[0] == "pycocotools"]:
        del sys.modules[name]


def boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    """Of all sizes; coordinates on a coarse grid, so that overlaps and scores are equal at times."""
    size = np.exp(rng.uniform(1.5, 5.5, (count, 2))).round()
    return np.concatenate([rng.integers(0, 40, (count, 2)) * 8.0, size], 1)


def data_set(seed: int, images: int = 12, categories: int = 3) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    rng = np.random.default_rng(seed)
    annotations: list[dict[str, Any]] = []
    detections: list[dict[str, Any]] = []
    for image in range(1, images + 1):
        for category in range(1, categories + 1):
            found = boxes(rng, int(rng.integers(0, 9)) if image > 1 else 0)
            for box in found:
                annotations.append(
                    {"id": len(annotations) + 1, "image_id": image, "category_id": category, "bbox": box.tolist(),
                     "area": float(box[2] * box[3]), "iscrowd": int(rng.uniform() < 0.2)}
                )  # fmt: skip
            moved = np.concatenate([found + rng.integers(-4, 5, found.shape), found, boxes(rng, 6)])
            for box in moved[rng.uniform(size=len(moved)) < 0.8]:
                detections.append(
                    {
                        "image_id": image,
                        "category_id": category,
                        "bbox": np.maximum(box, 1).tolist(),
                        "score": float(rng.integers(1, 20)) / 20,
                    }
                )
    whole = {
        "images": [{"id": i, "width": 500, "height": 500} for i in range(1, images + 1)],
        "categories": [{"id": c, "name": str(c)} for c in range(1, categories + 1)],
        "annotations": annotations,
    }
    return whole, detections


def by_polyop(evaluator: Any) -> dict[str, Any]:
    """What detectron2's COCOeval_opt does around the two functions."""
    p = evaluator.params
    evaluator._prepare()
    kinds = p.catIds if p.useCats else [-1]
    overlaps = [[evaluator.computeIoU(image, kind) for kind in kinds] for image in p.imgIds]

    def converted(found: dict[Any, list[dict[str, Any]]]) -> list[list[list[ours.InstanceAnnotation]]]:
        per_image = [
            [
                [
                    ours.InstanceAnnotation(
                        int(o["id"]),
                        o.get("score", 0.0),
                        o["area"],
                        bool(o.get("iscrowd", 0)),
                        bool(o.get("ignore", 0)),
                    )
                    for o in found[image, category]
                ]
                for category in p.catIds
            ]
            for image in p.imgIds
        ]
        return per_image if p.useCats else [[[o for c in i for o in c]] for i in per_image]

    evaluations = ours.COCOevalEvaluateImages(
        p.areaRng, p.maxDets[-1], p.iouThrs, overlaps, converted(evaluator._gts), converted(evaluator._dts)
    )
    result = ours.COCOevalAccumulate(copy.deepcopy(p), evaluations)
    counts = result["counts"]
    result["recall"] = np.array(result["recall"]).reshape(counts[:1] + counts[2:])
    for name in ("precision", "scores"):
        result[name] = np.array(result[name]).reshape(counts)
    return result


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("use_categories", [1, 0])
def test_equals_pycocotools(pycocotools: Any, seed: int, use_categories: int) -> None:
    whole, detections = data_set(seed)
    truth = pycocotools.coco.COCO()
    truth.dataset = whole
    truth.createIndex()
    found = truth.loadRes(detections)
    theirs, evaluator = (pycocotools.cocoeval.COCOeval(truth, found, "bbox") for _ in range(2))
    for one in (theirs, evaluator):
        one.params.useCats = use_categories
        one.params.maxDets = [1, 4, 10]
    theirs.evaluate()
    theirs.accumulate()
    result = by_polyop(evaluator)
    assert result["counts"] == theirs.eval["counts"]
    for name in ("precision", "recall", "scores"):
        np.testing.assert_allclose(result[name], theirs.eval[name], rtol=1e-12, atol=0)
    assert 0.1 < result["recall"][-1, 0, 0, -1] < result["recall"][0, 0, 0, -1] <= 1
    assert (result["precision"] == -1).any() == (theirs.eval["precision"] == -1).any()


def test_nothing() -> None:
    none: list[list[list[ours.InstanceAnnotation]]] = [[[]]]
    box = ours.InstanceAnnotation(7, 0.5, 100.0, False, False)
    ranges = [[0, 1e10], [0, 50]]
    (one, small) = ours.COCOevalEvaluateImages(ranges, 10, [0.5, 0.7], [[[]]], none, [[[box]]])
    assert one.detection_matches.tolist() == [[0], [0]]
    assert (one.detection_ignores.tolist(), small.detection_ignores.tolist()) == ([[False]] * 2, [[True]] * 2)
    (one, small) = ours.COCOevalEvaluateImages(ranges, 10, [0.5], [[[]]], [[[box]]], none)
    assert (one.ground_truth_ignores.tolist(), small.ground_truth_ignores.tolist()) == ([False], [True])
    (one, _) = ours.COCOevalEvaluateImages(ranges, 10, [0.5], [[[[0.6]]]], [[[box]]], [[[box]]])
    assert one.detection_matches.tolist() == [[7]]
    with pytest.raises(ValueError, match=r"COCOevalEvaluateImages: expected overlaps \[1, 1\], got \[1, 2\]"):
        ours.COCOevalEvaluateImages(ranges, 10, [0.5], [[[[0.6, 0.7]]]], [[[box]]], [[[box]]])
