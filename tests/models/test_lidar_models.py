# SPDX-License-Identifier: Apache-2.0
"""Detectors from points to boxes in one file each: PyTorch, ONNX Runtime, OpenVINO, and engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pointpillars
import pytest
import scenes
import second
import torch
from write import make_pointpillars, make_second, write_pointpillars, write_second

import polyop
import polyop.openvino
from tests.support.tensorrt_rtx import HAS_PLUGINS, NO_ENGINE, convert, plugins

PILLARS, VOXELS = pointpillars.Config.small(), second.Config.small()


@pytest.fixture(scope="module")
def points() -> torch.Tensor:
    """Points ahead of the sensor, some of them out of range."""
    sweep = scenes.street(steps=1000).points
    return torch.from_numpy(sweep[sweep[:, 0] > -5])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pointpillars.onnx, pointpillars_plugins.onnx and second.onnx."""
    lidar_folder = tmp_path_factory.mktemp("lidar")
    write_pointpillars(lidar_folder, PILLARS)
    write_second(lidar_folder, VOXELS)
    return lidar_folder


def run(path: Path, **feeds: torch.Tensor) -> np.ndarray:
    options = ort.SessionOptions()
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    (detections,) = ort.InferenceSession(path, options).run(None, {n: t.numpy() for n, t in feeds.items()})
    return detections


def same(got: np.ndarray | torch.Tensor, want: np.ndarray | torch.Tensor) -> None:
    """Compares detections; one in fifty may differ, because rounding decides when an overlap equals the threshold.

    Rows with score 0 are padding.
    """
    got, want = (np.asarray(t)[np.asarray(t)[:, 8] > 0] for t in (got, want))
    assert len(want) > 20
    near = (np.abs(got[:, None] - want[None]) < 1e-3 + 1e-3 * np.abs(want[None])).all(-1)
    assert near.any(0).mean() >= 0.98
    assert near.any(1).mean() >= 0.98


@pytest.mark.parametrize("name", ["pointpillars", "second"])
def test_pytorch_onnxruntime_and_openvino(name: str, folder: Path, points: torch.Tensor) -> None:
    network = make_second(VOXELS) if name == "second" else make_pointpillars(PILLARS)[0]
    core = polyop.openvino.core()
    in_openvino = core.compile_model(folder / f"{name}.onnx", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    for cloud in (points, points[::7].contiguous()):
        with torch.no_grad():
            want = network(cloud)
        same(run(folder / f"{name}.onnx", points=cloud), want)
        same(in_openvino({"points": cloud.numpy()})[0], want)


def test_plugin_nodes_give_the_same_boxes(folder: Path, points: torch.Tensor) -> None:
    plugin_file = folder / "pointpillars_plugins.onnx"
    names = {node.op_type: node.domain for node in onnx.load(plugin_file).graph.node}
    assert names["VoxelGeneratorPlugin"] == names["PillarScatterPlugin"] == ""
    want = run(folder / "pointpillars.onnx", points=points)
    behind = torch.full((300, 4), 1.0)  # the number of valid points
    padded, count = torch.cat([points, behind])[None], torch.tensor([len(points)], dtype=torch.int32)
    same(run(plugin_file, points=padded, num_points=count), want)
    with torch.no_grad():
        same(make_pointpillars(PILLARS)[1](padded, count), want)


def test_sparse_convolutions_are_autowares_nodes(folder: Path) -> None:
    kinds = [f"{node.domain}::{node.op_type}" for node in onnx.load(folder / "second.onnx").graph.node]
    assert kinds.count("autoware::ImplicitGemm") == 12
    assert kinds.count("autoware::GetIndicePairsImplicitGemm") == 8  # layers with the same indice_key share their pairs


def test_engines_of_pointpillars(folder: Path, program: str, not_run: Callable[[str], None]) -> None:
    if not HAS_PLUGINS:
        not_run(NO_ENGINE)
        return
    shapes = "points=100x4:20000x4:60000x4"
    assert plugins(convert(program, folder / "pointpillars.onnx", "--shapes", shapes)) >= 3
    padded = "points=1x100x4:1x20000x4:1x60000x4"
    assert plugins(convert(program, folder / "pointpillars_plugins.onnx", "--shapes", padded)) >= 3
