# SPDX-License-Identifier: Apache-2.0
"""polyop.export: choice of exporter, comparison of results, reported differences, dynamic sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import polyop
from polyop.exporting import _publish
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


def test_auto_tries_dynamo_first(tmp_path: Path) -> None:
    x = torch.ones(1, 2, 4, 4)
    assert polyop.export(polyop.CornerPool("top"), x, tmp_path / "a.onnx", verbose=False).exporter == "dynamo"


def test_reports_the_output_that_differs(tmp_path: Path) -> None:
    class Noise(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x * 2, torch.rand_like(x)

    with pytest.raises(polyop.ExportError, match=r"outputs differ from PyTorch's: 'noise' by 0\.\d+ \("):
        polyop.export(Noise(), torch.ones(3), tmp_path / "n.onnx", output_names=["same", "noise"], verbose=False)


def test_reports_the_errors_of_both_exporters(tmp_path: Path) -> None:
    class Unknown(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to_sparse().to_dense()

    with pytest.raises(polyop.ExportError, match=r"(?s)could not be exported:\n  dynamo: .*\n  torchscript: "):
        polyop.export(Unknown(), torch.ones(3), tmp_path / "u.onnx", verbose=False)


def test_rejects_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="exporter: expected 'auto', 'dynamo' or 'torchscript', got 'onnx'"):
        polyop.export(Head(), head_inputs(2, 4), tmp_path / "x.onnx", exporter="onnx")
    with pytest.raises(ValueError, match=r"dynamic: expected names of inputs \(x, boxes, scores\), got y"):
        polyop.export(Head(), head_inputs(2, 4), tmp_path / "x.onnx", dynamic={"y": {0: "n"}})
    with pytest.raises(ValueError, match="input_names: expected 3 names, got 1"):
        polyop.export(Head(), head_inputs(2, 4), tmp_path / "x.onnx", input_names=["x"])
    with pytest.raises(TypeError, match=r"args\[0\]: expected a tensor or None, got list: export a module whose"):
        polyop.export(Head(), (list(head_inputs(2, 4)),), tmp_path / "x.onnx")


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


def test_each_module_keeps_its_own_mode(tmp_path: Path) -> None:
    """A frozen backbone stays in evaluation mode in a model that is trained."""
    model = torch.nn.Sequential(torch.nn.BatchNorm2d(2).eval(), torch.nn.Dropout(0.9)).train()
    model[0].eval()
    modes = [module.training for module in model.modules()]
    polyop.export(model, torch.rand(1, 2, 3, 3), tmp_path / "t.onnx", verbose=False)
    assert [module.training for module in model.modules()] == modes == [True, False, True]


class Scaled(torch.nn.Module):
    def __init__(self, scale: float, noise: bool = False) -> None:
        super().__init__()
        self.weight, self.noise = torch.nn.Parameter(torch.full((3,), float(scale))), noise

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight + (torch.rand_like(x) if self.noise else 0)


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_an_older_file_stays_until_the_comparison(exporter: str, tmp_path: Path) -> None:
    path, x = tmp_path / "a.onnx", torch.ones(3)
    polyop.export(Scaled(2), x, path, exporter=exporter, verbose=False)
    before = path.read_bytes()
    for portable in (False, True):
        with pytest.raises(polyop.ExportError, match=r"^a\.onnx: .*differ from PyTorch's"):
            polyop.export(Scaled(3, noise=True), x, path, exporter=exporter, portable=portable, verbose=False)
    assert path.read_bytes() == before
    with pytest.raises(polyop.ExportError):
        polyop.export(Scaled(3, noise=True), x, tmp_path / "new.onnx", exporter=exporter, verbose=False)
    assert list(tmp_path.iterdir()) == [path]
    polyop.export(Scaled(4), x, path, exporter=exporter, verbose=False)
    (name,) = (info.name for info in session(onnx.load(path)).get_inputs())
    (got,) = session(onnx.load(path)).run(None, {name: x.numpy()})
    assert got.tolist() == [4.0] * 3


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_outputs_of_every_kind(exporter: str, tmp_path: Path) -> None:
    class Kinds(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple:
            size = x.shape[0]
            kinds = (x > 0.5, (x * 9).int(), x.argmax(1), (x * 255).to(torch.uint8), x.half())
            return size, [*kinds, None], {"twice": x * 2}, size + 1

    report = polyop.export(
        Kinds(), torch.rand(2, 3), tmp_path / "k.onnx", exporter=exporter, dynamic={"x": {0: "n"}}, verbose=False
    )
    types = [(o.dtype, o.agrees) for o in report.outputs]
    expected = ["int64", "bool", "int32", "int64", "uint8", "float16", "float32", "int64"]
    assert types == [(name, True) for name in expected]


def test_outputs_that_no_file_has(tmp_path: Path) -> None:
    class Text(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple:
            return x, "text"

    with pytest.raises(polyop.ExportError, match="expected tensors and numbers, got a value of type str"):
        polyop.export(Text(), torch.ones(3), tmp_path / "t.onnx", verbose=False)


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("a size depends on values of a tensor, at /x/torch_geometric/nn/pool/glob.py:34", "size=…"),
        ("AssertionError: Input height (56) doesn't match model (64).", "dynamic_img_size=True"),
        ("a Python condition, at /x/kornia/feature/lightglue.py:640", "depth_confidence=-1"),
        ("a Python condition, at /x/transformers/models/big_bird/modeling_big_bird.py:1", '"original_full"'),
        ("a Python condition, at /x/torchaudio/models/tacotron2.py:850", "decoder_early_stopping=False"),
    ],
)
def test_an_error_names_the_option_of_a_package(text: str, option: str) -> None:
    assert option in str(polyop.ExportError(text))
    assert str(polyop.ExportError(str(polyop.ExportError(text)))) == str(polyop.ExportError(text))
    assert str(polyop.ExportError("a Python condition, at /x/model.py:1")) == "a Python condition, at /x/model.py:1"


def test_the_cache_of_a_language_model_is_no_output(tmp_path: Path) -> None:
    class DynamicCache:
        """Of transformers."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, DynamicCache]:
            return x * 2, DynamicCache()

    with pytest.raises(polyop.ExportError, match="use_cache = False"):
        polyop.export(Model(), torch.rand(2), tmp_path / "m.onnx")


def test_external_data_overwrites_no_other_file(tmp_path: Path) -> None:
    """TorchScript's exporter writes a file for each tensor of a large model, named after the tensor."""
    path, scratch = tmp_path / "a.onnx", tmp_path / "scratch"
    (tmp_path / "weight").write_text("another model's")
    scratch.mkdir()
    for name in ("a.onnx", "weight"):
        (scratch / name).write_text("new")
    with pytest.raises(polyop.ExportError, match="weight already exists"):
        _publish(scratch / "a.onnx", path)
    assert (tmp_path / "weight").read_text() == "another model's"
    assert not path.exists()
    (scratch / "weight").rename(scratch / "a.onnx.data")
    (tmp_path / "a.onnx.data").write_text("old")
    _publish(scratch / "a.onnx", path)
    assert [(tmp_path / name).read_text() for name in ("a.onnx", "a.onnx.data")] == ["new", "new"]


def test_names_with_brackets_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    polyop.export(torch.nn.Identity(), torch.ones(3), tmp_path / "a[red].onnx", output_names=["y[red]"])
    said = capsys.readouterr().out
    assert "a[red].onnx" in said
    assert "y[red]" in said
