"""polyop.export: choice of exporter, comparison of results, reported differences, dynamic sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import polyop
from tests.support.single_node import session

pytestmark = pytest.mark.filterwarnings("ignore")


class Head(torch.nn.Module):
    """Boxes that NMS keeps and the features under them: the number of rows depends on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = polyop.RoIAlign(3, 0.5, 2, aligned=True)

    def forward(self, x: torch.Tensor, boxes: torch.Tensor, scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept = polyop.nms(boxes, scores, 0.5)
        rois = torch.cat([torch.zeros_like(boxes[:, :1]), boxes], 1)[kept]
        return self.pool(x, rois), kept


def head_inputs(count: int, size: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(count)
    corner = torch.rand(count, 2, generator=generator) * 10
    return (
        torch.rand(1, 4, size, size + 3, generator=generator),
        torch.cat([corner, corner + 8], 1),
        torch.rand(count, generator=generator),
    )


NAMES = ["x", "boxes", "scores"]
DYNAMIC = {"x": {2: "height", 3: "width"}, "boxes": {0: "boxes"}, "scores": {0: "boxes"}}


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_dynamic_sizes(exporter: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "head.onnx"
    report = polyop.export(
        Head(), head_inputs(20, 12), path, exporter=exporter, input_names=NAMES, output_names=["pooled", "kept"],
        dynamic=DYNAMIC,
    )  # fmt: skip
    assert report.exporter == exporter
    assert report.nodes["mmcv::MMCVRoiAlign"] == report.nodes["mmcv::NonMaxSuppression"] == 1
    assert report.opsets["mmcv"] == 1
    assert all(o.agrees for o in report.outputs)
    assert "mmcv::NonMaxSuppression x1" in capsys.readouterr().out
    session_ = session(onnx.load(path))
    for count, size in ((20, 12), (1, 7), (33, 30)):
        inputs = head_inputs(count, size)
        feeds = {name: t.numpy() for name, t in zip(NAMES, inputs, strict=True)}
        for got, want in zip(session_.run(None, feeds), Head()(*inputs), strict=True):
            np.testing.assert_array_equal(got, want.numpy())


def test_auto_tries_dynamo_first_and_falls_back(tmp_path: Path) -> None:
    class Branches(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (
                polyop.corner_pool(x, "top") if x.sum() > 0 else x
            )  # control flow depends on a value, so torch.export refuses it

    x = torch.ones(1, 2, 4, 4)
    assert polyop.export(polyop.CornerPool("top"), x, tmp_path / "a.onnx", verbose=False).exporter == "dynamo"
    assert polyop.export(Branches(), x, tmp_path / "b.onnx", verbose=False).exporter == "torchscript"


def test_reports_the_output_that_differs(tmp_path: Path) -> None:
    class Noise(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x * 2, torch.rand_like(x)

    with pytest.raises(polyop.ExportError, match=r"outputs differ from PyTorch's: 'noise' by 0\.\d+$"):
        polyop.export(Noise(), torch.ones(3), tmp_path / "n.onnx", output_names=["same", "noise"], verbose=False)


def test_reports_the_errors_of_both_exporters(tmp_path: Path) -> None:
    class Unknown(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.bessel_j0(x)

    with pytest.raises(polyop.ExportError, match=r"(?s)could not be exported:\n  dynamo: .*\n  torchscript: "):
        polyop.export(Unknown(), torch.ones(3), tmp_path / "u.onnx", verbose=False)


def test_rejects_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="exporter: expected 'auto', 'dynamo' or 'torchscript', got 'onnx'"):
        polyop.export(Head(), head_inputs(2, 4), tmp_path / "x.onnx", exporter="onnx")
    with pytest.raises(ValueError, match=r"dynamic: expected names of inputs \(x, boxes, scores\), got y"):
        polyop.export(Head(), head_inputs(2, 4), tmp_path / "x.onnx", dynamic={"y": {0: "n"}})
    with pytest.raises(ValueError, match="input_names: expected 3 names, got 1"):
        polyop.export(Head(), head_inputs(2, 4), tmp_path / "x.onnx", input_names=["x"])


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_omitted_inputs(exporter: str, tmp_path: Path) -> None:
    """One input is None and another is unused: neither is in the file, and the others are matched by name."""

    class Some(torch.nn.Module):
        def forward(
            self, a: torch.Tensor, unused: torch.Tensor, bias: torch.Tensor | None, b: torch.Tensor
        ) -> torch.Tensor:
            return a - b if bias is None else a - b + bias

    args = torch.rand(3, 2), torch.rand(3, 2), None, torch.rand(3, 2)
    dynamic = {"a": {0: "n"}, "b": {0: "n"}}
    report = polyop.export(Some(), args, tmp_path / "s.onnx", exporter=exporter, dynamic=dynamic, verbose=False)
    assert [o.shape for o in report.outputs] == [(3, 2)]


def test_restores_training_mode(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Dropout(0.9), polyop.CornerPool("left")).train()
    polyop.export(model, torch.rand(1, 2, 3, 3), tmp_path / "t.onnx", domain="mmcv", verbose=False)
    assert model.training
