# SPDX-License-Identifier: Apache-2.0
"""The whole way: PyTorch to ONNX (equal in ONNX Runtime and OpenVINO) to an engine of TensorRT-RTX.

Running the engines needs a GPU (`make gpu`). Where CUDA is not installed there are no plugins and no engines.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import polyop
import polyop.openvino
from tests.support.processes import ROOT, environment
from tests.support.tensorrt_rtx import HAS_PLUGINS, NO_ENGINE, RUNTIME, convert, plugins


class DetectorHead(torch.nn.Module):
    """Features of the boxes that suppression keeps."""

    def forward(self, features: torch.Tensor, boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        kept = polyop.nms(boxes, scores, iou_threshold=0.5)
        rois = torch.cat([torch.zeros_like(boxes[:, :1]), boxes], 1)[kept]
        return polyop.roi_align(features, rois, 7, spatial_scale=0.25, aligned=True).flatten(1)


class DeformableNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 16, 3, padding=1)
        self.second = polyop.ModulatedDeformConv2dPack(16, 32, 3, padding=1, deform_groups=2)
        torch.nn.init.uniform_(self.second.conv_offset.weight, -0.2, 0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x))).mean((2, 3))


class PointNet(torch.nn.Module):
    """The maximum over each point's neighbours, after a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 8)

    def forward(self, points: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        index, _ = polyop.knn_query(torch.tensor(8), points, ends)
        return self.layer(points[index.long()] - points[:, None]).amax(1)


class InternImageBlock(torch.nn.Module):
    """InternImage's basic layer: a depthwise convolution computes where DCNv3 samples and with which weights; then an
    MLP.
    """

    def __init__(self, group: int = 4, channels: int = 8) -> None:
        super().__init__()
        self.group, self.channels = group, channels
        width = group * channels
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(3))
        self.depthwise = torch.nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.value, self.out = torch.nn.Linear(width, width), torch.nn.Linear(width, width)
        self.offset, self.mask = torch.nn.Linear(width, group * 18), torch.nn.Linear(width, group * 9)
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, H, W, C]."""
        y = self.norms[0](x)
        around = torch.nn.functional.gelu(self.norms[1](self.depthwise(y.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)))
        mask = self.mask(around).unflatten(-1, (self.group, 9)).softmax(-1).flatten(-2)
        sampled = polyop.dcn_v3(self.value(y), self.offset(around), mask, 3, 1, 1, 1, self.group, self.channels)
        x = x + self.out(sampled)
        return x + self.mlp(self.norms[2](x))


def export(net: torch.nn.Module, example: tuple[torch.Tensor, ...], path: Path, **names: object) -> None:
    """Exports the model; raises an error if ONNX Runtime's or OpenVINO's results differ from PyTorch's."""
    polyop.export(net, example, path, output_names=["y"], **names)
    model = polyop.openvino.core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    got = model(dict(zip(names["input_names"], (t.numpy() for t in example), strict=True)))
    with torch.no_grad():
        np.testing.assert_allclose(got["y"], net(*example), rtol=1e-3, atol=1e-4)


def test_detector_head(program: str, tmp_path: Path, not_run: Callable[[str], None]) -> None:
    corner = torch.rand(50, 2) * 60
    example = torch.rand(1, 16, 25, 25), torch.cat([corner, corner + 5 + torch.rand(50, 2) * 30], 1), torch.rand(50)
    dynamic = {"boxes": {0: "boxes"}, "scores": {0: "boxes"}}
    model = tmp_path / "head.onnx"
    export(DetectorHead(), example, model, input_names=["features", "boxes", "scores"], dynamic=dynamic)
    if not HAS_PLUGINS:
        not_run(NO_ENGINE)
        return
    shapes = ("--shapes", "boxes=1x4:50x4:500x4", "--shapes", "scores=1:50:500")
    assert plugins(convert(program, model, *shapes)) == 2
    half = convert(program, model, *shapes, "--fp16")
    assert plugins(half) == 2
    assert half["needs"]["precision"] == "fp16"


def test_deformable_net(program: str, tmp_path: Path, not_run: Callable[[str], None]) -> None:
    model = tmp_path / "deform.onnx"
    dynamic = {"x": {0: "n", 2: "h", 3: "w"}}
    export(DeformableNet().eval(), (torch.rand(2, 3, 20, 24),), model, input_names=["x"], dynamic=dynamic)
    if not HAS_PLUGINS:
        not_run(NO_ENGINE)
        return
    proto = onnx.load(model)
    onnx.helper.set_model_props(proto, {"polyop.detections": "{}"})
    onnx.save(proto, model)
    report = convert(program, model, "--shapes", "x=1x3x8x8:2x3x20x24:4x3x64x64", "--layers")
    assert plugins(report) == 1
    assert report["needs"]["metadata"] == {"polyop.detections": "{}"}
    assert report["needs"]["plugin_libraries"] == ["libpolyop_tensorrt.so"]
    assert report["needs"]["outputs"]["y"] == {"type": "f32", "shape": [-1, 32]}


def test_point_cloud_net(program: str, tmp_path: Path, not_run: Callable[[str], None]) -> None:
    model = tmp_path / "points.onnx"
    example = torch.rand(100, 3), torch.tensor([40, 100], dtype=torch.int32)
    export(PointNet().eval(), example, model, input_names=["points", "ends"], dynamic={"points": {0: "n"}})
    if not HAS_PLUGINS:
        not_run(NO_ENGINE)
        return
    assert plugins(convert(program, model, "--shapes", "points=20x3:100x3:5000x3")) == 1


def test_internimage(program: str, tmp_path: Path, not_run: Callable[[str], None]) -> None:
    model = tmp_path / "internimage.onnx"
    net, example = torch.nn.Sequential(InternImageBlock(), InternImageBlock()).eval(), torch.rand(2, 14, 12, 32)
    export(net, (example,), model, input_names=["x"], dynamic={"x": {0: "n", 1: "h", 2: "w"}})
    if not HAS_PLUGINS:
        not_run(NO_ENGINE)
        return
    assert plugins(convert(program, model, "--shapes", "x=1x8x8x32:2x14x12x32:4x56x56x32")) == 2


def test_super_resolution(program: str, tmp_path: Path, not_run: Callable[[str], None]) -> None:
    """Resizing by run-time scales becomes TensorRT's own layer, with the scales fixed when the engine is built."""
    model = tmp_path / "srcnn3.onnx"
    model.write_bytes((ROOT / "models" / "srcnn" / "srcnn3.onnx").read_bytes())
    if not HAS_PLUGINS:
        not_run(NO_ENGINE)
        return
    report = convert(program, model, "--set", "factor=1,1,3,3", "--shapes", "input=1x3x16x16:1x3x64x64:1x3x256x256")
    assert plugins(report) == 0
    assert any(layer["type"] == "RESIZE" for layer in report["layers"])
    assert list(report["needs"]["inputs"]) == ["input"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "m.engine"], "give its smallest, usual and largest shape"),
        (["-o", "m.engine", "--shapes", "x=1x3x8x8:2x3"], "expected 1 or 3 shapes, got 2"),
        (["-o", "m.engine", "--shapes", "x=1xax8"], "expected an extent, got 'a'"),
        (["-o", "m.engine", "--shapes", "1x3x8x8"], "NAME= is missing"),
        (["-o", "m.engine", "--set", "x=one"], "'one' is not a number"),
        ([], "required"),
    ],
)
def test_convert_reports_errors(program: str, tmp_path: Path, arguments: list[str], said: str) -> None:
    model = tmp_path / "deform.onnx"
    dynamic = {"x": {2: "h"}}
    polyop.export(
        DeformableNet().eval(), torch.rand(1, 3, 8, 8), model, input_names=["x"], output_names=["y"], dynamic=dynamic
    )
    done = subprocess.run(
        [program, "convert", str(model), *arguments],
        cwd=tmp_path,
        env=environment(RUNTIME),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    if HAS_PLUGINS or "smallest, usual" not in said:
        assert said in done.stderr
    assert not (tmp_path / "m.engine").exists()
