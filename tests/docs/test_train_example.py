# SPDX-License-Identifier: Apache-2.0
"""The example that trains detectors: they learn, and every runtime finds what PyTorch finds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

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
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, json.loads((folder / "results.json").read_text())


@pytest.mark.parametrize("detector", ["two-stage", pytest.param("deformable-detr", marks=pytest.mark.slow)])
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
def test_the_whole_training(tmp_path: Path, modules: dict[str, ModuleType]) -> None:
    """Every runtime reaches the precision that the example's page promises."""
    _, results = run(tmp_path)
    assert set(results) == set(DETECTORS)
    for found in results.values():
        precisions = {r["runtime"]: r["precision"] for r in found["results"]}
        assert min(precisions.values()) >= 0.9, precisions
        assert min(r["agreement"] for r in found["results"]) > 0.95
    for name in DETECTORS:
        assert_keeps_its_detections_in_half(tmp_path / name, modules["scenes"])


def assert_keeps_its_detections_in_half(folder: Path, scenes: ModuleType, count: int = 40) -> None:
    """Checks that at most 0.5 points of mAP are lost by annotations, in whichever nodes `polyop convert` halves."""
    (folder / "photos").mkdir()
    images, annotations = [], []
    for i in range(count):
        one = scenes.scene(i)
        pixels = (one.image.transpose(1, 2, 0) * 255).round().astype(np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / f"{i}.png")
        images.append({"id": i, "file_name": f"{i}.png"})
        annotations += [
            {"image_id": i, "category_id": int(n), "bbox": [*map(float, box[:2]), *map(float, box[2:] - box[:2])]}
            for box, n in zip(one.boxes, one.labels, strict=True)
        ]
    categories = [{"id": i, "name": name} for i, name in enumerate(scenes.CLASSES)]
    truth = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "truth.json").write_text(json.dumps(truth))
    words = ["convert", "detector.onnx", "-o", "half.onnx", "--half", "--images", "photos", "--truth", "truth.json",
             "--range", "0,1", "--mean", "0,0,0", "--std", "1,1,1", "--json"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "polyop", *words], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    half = json.loads(done.stdout)["half"]
    assert half["of"] == "mAP"
    assert half["loss"] <= half["limit"] == 0.005
    assert half["nodes_in_half"] > 20 * len(half["kept"])


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    names = ("scenes",)
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
