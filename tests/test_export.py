"""polyop.export: which exporter, what is compared, what departs, what may change size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from single_node import session

import polyop

pytestmark = pytest.mark.filterwarnings("ignore")


class Head(torch.nn.Module):
    """Boxes that stay after NMS, and what lies under them: a size that only the data tells."""

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
def test_sizes_that_change(exporter: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
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
    made = session(onnx.load(path))
    for count, size in ((20, 12), (1, 7), (33, 30)):
        inputs = head_inputs(count, size)
        feeds = {name: t.numpy() for name, t in zip(NAMES, inputs, strict=True)}
        for got, want in zip(made.run(None, feeds), Head()(*inputs), strict=True):
            np.testing.assert_array_equal(got, want.numpy())


def test_auto_takes_dynamo_first_and_falls_back(tmp_path: Path) -> None:
    class Branches(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return polyop.corner_pool(x, "top") if x.sum() > 0 else x  # the value decides: torch.export refuses

    x = torch.ones(1, 2, 4, 4)
    assert polyop.export(polyop.CornerPool("top"), x, tmp_path / "a.onnx", verbose=False).exporter == "dynamo"
    assert polyop.export(Branches(), x, tmp_path / "b.onnx", verbose=False).exporter == "torchscript"


def test_what_departs_is_named(tmp_path: Path) -> None:
    class Noise(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x * 2, torch.rand_like(x)

    with pytest.raises(polyop.ExportError, match=r"departs from PyTorch: 'noise' by 0\.\d+$"):
        polyop.export(Noise(), torch.ones(3), tmp_path / "n.onnx", output_names=["same", "noise"], verbose=False)


def test_what_no_exporter_can_write(tmp_path: Path) -> None:
    class Unknown(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.bessel_j0(x)

    with pytest.raises(polyop.ExportError, match=r"(?s)could not be exported:\n  dynamo: .*\n  torchscript: "):
        polyop.export(Unknown(), torch.ones(3), tmp_path / "u.onnx", verbose=False)


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="exporter is 'onnx', wanted auto, dynamo or torchscript"):
        polyop.export(Head(), head_inputs(2, 4), tmp_path / "x.onnx", exporter="onnx")
    with pytest.raises(ValueError, match=r"dynamic has \['y'\], which is no input: \['x', 'boxes', 'scores'\]"):
        polyop.export(Head(), head_inputs(2, 4), tmp_path / "x.onnx", dynamic={"y": {0: "n"}})
    with pytest.raises(ValueError, match="input_names has 1 names for 3 tensors"):
        polyop.export(Head(), head_inputs(2, 4), tmp_path / "x.onnx", input_names=["x"])


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_inputs_that_are_left_out(exporter: str, tmp_path: Path) -> None:
    """One is None, another decides nothing: neither is in the file, and the rest is found by name."""

    class Some(torch.nn.Module):
        def forward(
            self, a: torch.Tensor, unused: torch.Tensor, bias: torch.Tensor | None, b: torch.Tensor
        ) -> torch.Tensor:
            return a - b if bias is None else a - b + bias

    args = torch.rand(3, 2), torch.rand(3, 2), None, torch.rand(3, 2)
    dynamic = {"a": {0: "n"}, "b": {0: "n"}}
    report = polyop.export(Some(), args, tmp_path / "s.onnx", exporter=exporter, dynamic=dynamic, verbose=False)
    assert [o.shape for o in report.outputs] == [(3, 2)]


def test_the_model_is_left_as_it_was(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Dropout(0.9), polyop.CornerPool("left")).train()
    polyop.export(model, torch.rand(1, 2, 3, 3), tmp_path / "t.onnx", domain="mmcv", verbose=False)
    assert model.training
