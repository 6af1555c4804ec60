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
