"""The example that trains detectors: they learn, and every runtime finds what PyTorch finds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.openmmlab import FOLDER as OPENMMLAB
from tests.support.processes import ROOT, environment

EXAMPLE = ROOT / "examples" / "train"
DETECTORS = {
    "two-stage": ["mmcv::MMCVRoiAlign x1", "mmdeploy::TRTBatchedNMS x2"],
    "deformable-detr": ["mmcv::MMCVMultiScaleDeformableAttention x3", "mmdeploy::TRTBatchedNMS x1"],
}
HALF = "OpenVINO, polyop convert --fp16"


def run(folder: Path, *arguments: object) -> tuple[str, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, EXAMPLE / "main.py", folder, *map(str, arguments)],
        capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, json.loads((folder / "results.json").read_text())


@pytest.mark.parametrize("detector", DETECTORS)
def test_a_short_training(detector: str, tmp_path: Path) -> None:
    said, results = run(tmp_path, "--detector", detector, "--steps", 30, "--scenes", 10, "--threads", 1)
    for node in DETECTORS[detector]:
        assert node in said
    first, last = results[detector]["loss"]
    assert last < 0.8 * first
    runtimes = {r["runtime"]: r["agreement"] for r in results[detector]["results"]}
    assert len(runtimes) == 7
    half = runtimes.pop(HALF)
    assert min(runtimes.values()) == 1, runtimes
    assert half > 0.9
    assert 5_000 < (tmp_path / "detections.png").stat().st_size < 400_000


@pytest.mark.slow
def test_the_whole_training(tmp_path: Path) -> None:
    """Every runtime reaches the precision that the example's page promises."""
    _, results = run(tmp_path)
    assert set(results) == set(DETECTORS)
    for found in results.values():
        precisions = {r["runtime"]: r["precision"] for r in found["results"]}
        assert min(precisions.values()) >= 0.9, precisions
        assert min(r["agreement"] for r in found["results"]) > 0.95


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    names = ("scenes", "precision")
    before = {name: sys.modules.pop(name, None) for name in names}  # models/scenes has a module of this name, too
    yield {name: import_module(name) for name in names}
    for name, module in before.items():
        del sys.modules[name]
        if module is not None:
            sys.modules[name] = module


def test_a_seed_determines_a_scene(modules: dict[str, ModuleType]) -> None:
    scenes = modules["scenes"]
    one, again, other = scenes.scene(3), scenes.scene(3), scenes.scene(4)
    np.testing.assert_array_equal(one.image, again.image)
    np.testing.assert_array_equal(one.boxes, again.boxes)
    assert not np.array_equal(one.image, other.image)
    assert one.boxes.min() >= 0
    assert one.boxes.max() <= scenes.SIZE


def test_precision_of_a_case_by_hand(modules: dict[str, ModuleType]) -> None:
    """Class 0 has two objects. By descending score: a detection of the first object, a second one of the same object,
    and a detection of the second object. Precisions are 1, 1/2 and 2/3 at recalls 1/2, 1/2 and 1: 51 of the 101
    recalls have the best precision 1, and 50 have 2/3. Class 1 has one object, which is missed.
    """
    of = modules["precision"].Detections
    boxes = np.array([[0.0, 0, 10, 10], [20, 20, 30, 30], [40, 40, 50, 50]])
    truth = of(boxes, np.array([0, 0, 1]), np.ones(3))
    found = of(
        np.array([[0.0, 0, 10, 9], [0, 1, 10, 10], [20, 20, 30, 28], [60, 60, 70, 70]]),
        np.array([0, 0, 0, 1]),
        np.array([0.9, 0.8, 0.7, 0.6]),
    )
    expected = (51 + 50 * 2 / 3) / 101 / 2
    assert modules["precision"].mean_average_precision([truth], [found]) == pytest.approx(expected)
    assert modules["precision"].mean_average_precision([truth], [found], iou=0.85) == pytest.approx(51 / 101 / 2)
    assert modules["precision"].mean_average_precision([truth], [truth]) == 1


def test_precision_is_that_of_coco(modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    assert (OPENMMLAB / "pycocotools").is_dir(), f"{OPENMMLAB} is missing: run tools/setup.sh"
    monkeypatch.syspath_prepend(str(OPENMMLAB))
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    precision, rng = modules["precision"], np.random.default_rng(0)
    truth, found = [], []
    for _ in range(20):
        corner, extent = rng.uniform(0, 60, (6, 2)), rng.uniform(16, 40, (6, 2))
        truth.append(precision.Detections(np.hstack([corner, corner + extent]), rng.integers(3, size=6), np.ones(6)))
        boxes = np.repeat(truth[-1].boxes, 3, 0) + rng.uniform(-7, 7, (18, 4))
        labels = np.where(rng.uniform(size=18) < 0.8, np.repeat(truth[-1].labels, 3), rng.integers(3, size=18))
        found.append(precision.Detections(boxes, labels, rng.uniform(size=18)))

    def entries(scenes: list[Any]) -> list[dict[str, Any]]:
        return [
            {
                "image_id": i + 1, "category_id": int(label), "score": score, "iscrowd": 0,
                "bbox": [*box[:2], *(box[2:] - box[:2])], "area": float(np.prod(box[2:] - box[:2])),
            }
            for i, scene in enumerate(scenes)
            for box, label, score in zip(scene.boxes, scene.labels, scene.scores, strict=True)
        ]  # fmt: skip

    with redirect_stdout(StringIO()):
        annotations = COCO()
        annotations.dataset = {
            "info": {},
            "images": [{"id": i + 1} for i in range(20)],
            "categories": [{"id": i} for i in range(3)],
            "annotations": [{**entry, "id": n + 1} for n, entry in enumerate(entries(truth))],
        }
        annotations.createIndex()
        evaluation = COCOeval(annotations, annotations.loadRes(entries(found)), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    expected = evaluation.stats[1]
    assert 0.2 < expected < 0.9
    assert precision.mean_average_precision(truth, found) == pytest.approx(expected)
