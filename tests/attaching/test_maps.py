# SPDX-License-Identifier: Apache-2.0
"""Maps of classes, as MMDeploy exports MMSegmentation's models: the head mmseg of `polyop attach`, and what draws and
compares its results."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from polyop.attaching import AttachError, ImageSteps, attach

SIZE = (16, 24)
NAMES = ("road", "tree", "sky")
MEAN, STD = np.float32([123.675, 116.28, 103.53]), np.float32([58.395, 57.12, 57.375])


def write(path: Path, form: str, gain: tuple[float, ...] = (1, 1, 1), name: str = "mmseg") -> Path:
    """Writes a model whose class is the channel with the largest value, for half of the pixels if `form` is logits."""
    weights = np.diag(np.float32(gain)).reshape(3, 3, 1, 1)
    stride = 2 if form == "logits" else 1
    nodes = [helper.make_node("Conv", ["input", "weights"], ["logits"], strides=[stride, stride])]
    if form != "logits":
        nodes.append(helper.make_node("ArgMax", ["logits"], ["output"], axis=1, keepdims=int(form == "rank 4")))
    shape = {"logits": [1, 3, 8, 12], "rank 4": [1, 1, *SIZE], "rank 3": [1, *SIZE]}[form]
    output = ("logits", TensorProto.FLOAT) if form == "logits" else ("output", TensorProto.INT64)
    graph = helper.make_graph(
        nodes, name, [helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, 3, *SIZE])],
        [helper.make_tensor_value_info(*output, shape)], [numpy_helper.from_array(weights, "weights")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def segment(path: Path, photo: np.ndarray) -> np.ndarray:
    import onnxruntime

    return onnxruntime.InferenceSession(str(path)).run(None, {"photo": photo[None]})[0][0]


@pytest.fixture
def photo(tmp_path: Path) -> np.ndarray:
    """Writes a photo of three bands, the upper one blue: sky."""
    pixels = np.zeros((32, 48, 3), np.uint8)
    pixels[:8, :, 2], pixels[8:20, :, 1], pixels[20:, :, 0] = 250, 250, 250
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    return pixels


@pytest.mark.parametrize("form", ["rank 4", "rank 3", "logits"])
def test_the_map_has_the_photos_pixels(tmp_path: Path, photo: np.ndarray, form: str) -> None:
    report = attach(write(tmp_path / "m.onnx", form), tmp_path / "app.onnx", image=ImageSteps(), names=NAMES)
    assert (report.head, report.task, report.outputs) == ("mmseg", "map", ("segmentation",))
    found = segment(tmp_path / "app.onnx", photo)
    assert found.dtype == np.int32
    expected = np.repeat([2] * 8 + [1] * 12 + [0] * 12, 48).reshape(32, 48)
    edges = np.isin(np.arange(32), [6, 7, 8, 9, 18, 19, 20, 21])
    np.testing.assert_array_equal(found[~edges], expected[~edges])


def test_logits_are_interpolated_before_the_class_is_chosen(tmp_path: Path) -> None:
    """As MMSegmentation does it: the logits of the input are resized to the photo."""
    photo = np.random.default_rng(0).integers(0, 256, (16, 24, 3), np.uint8)
    attach(write(tmp_path / "m.onnx", "logits"), tmp_path / "app.onnx", image=ImageSteps())
    logits = torch.from_numpy(((photo - MEAN) / STD)[::2, ::2]).permute(2, 0, 1)[None]
    expected = torch.nn.functional.interpolate(logits, size=SIZE, mode="bilinear").argmax(1)[0].numpy()
    assert (segment(tmp_path / "app.onnx", photo) == expected).mean() > 0.99  # but for ties


def test_without_a_photo_the_map_has_the_models_cells(tmp_path: Path) -> None:
    import onnxruntime

    attach(write(tmp_path / "m.onnx", "logits"), tmp_path / "app.onnx")
    x = np.random.default_rng(0).standard_normal((1, 3, *SIZE)).astype(np.float32)
    found = onnxruntime.InferenceSession(str(tmp_path / "app.onnx")).run(None, {"input": x})[0]
    np.testing.assert_array_equal(found, x[:, :, ::2, ::2].argmax(1))


def test_what_is_no_map_is_not_guessed(tmp_path: Path) -> None:
    """Real numbers for each pixel may be an image, unless names in the file say that they are classes."""
    write(tmp_path / "m.onnx", "logits", name="srcnn")
    with pytest.raises(AttachError, match=r"fit no head.*mmseg: integers \[N, 1, H, W\]"):
        attach(tmp_path / "m.onnx", tmp_path / "app.onnx")
    assert attach(tmp_path / "m.onnx", tmp_path / "app.onnx", head="mmseg").task == "map"
    with pytest.raises(AttachError, match="classes, flat: expected a head with boxes, got a map of classes"):
        attach(tmp_path / "m.onnx", tmp_path / "app.onnx", head="mmseg", classes=[1], flat=True)
    with pytest.raises(AttachError, match="names: expected 3, one per class, got 1"):
        attach(tmp_path / "m.onnx", tmp_path / "app.onnx", head="mmseg", names=NAMES[:1])


def test_run_batch_and_verify(program: str, tmp_path: Path, photo: np.ndarray) -> None:
    def polyop(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *words], cwd=tmp_path, capture_output=True, text=True, check=False)

    for name, gain in (("a", (1, 1, 1)), ("same", (1, 1, 1.001)), ("blind", (1, 1, -1))):
        write(tmp_path / f"{name}.onnx", "rank 4", gain)
    attach(tmp_path / "a.onnx", tmp_path / "app.onnx", image=ImageSteps(), names=NAMES)
    done = polyop("run", "app.onnx", "photo.png", "--draw", "drawn.png", "--csv", "found.csv", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["detections"]
    assert [(region["name"], region["share"]) for region in found] == [("road", 0.375), ("tree", 0.375), ("sky", 0.25)]
    assert found[2]["box"] == [0, 0, 48, 8]
    assert next(csv.reader((tmp_path / "found.csv").open())) == ["class", "name", "share", "x1", "y1", "x2", "y2"]
    drawn = np.asarray(Image.open(tmp_path / "drawn.png"))
    assert (drawn[31, 0] != photo[31, 0]).any()
    assert "25.0 %" in polyop("run", "app.onnx", "photo.png", "--names", "coco").stdout

    done = polyop("batch", "app.onnx", "-i", "photo.png", "-o", "out", "--draw", "drawings", "--csv", "all.csv")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "drawings" / "photo.png")), drawn)

    done = polyop("verify", "a.onnx", "--against", "same.onnx", "--images", "photo.png", "--task", "detection")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mean IoU 1.0000, equal pixels 100.00 %" in done.stdout
    done = polyop("verify", "a.onnx", "--against", "blind.onnx", "--images", "photo.png", "--draw", "worst", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["equal"], report["equal_pixels"]) == (1, False, 0.75)
    assert 0 < report["mean_iou"] < 0.8
    assert Image.open(tmp_path / report["worst"][0]["drawing"]).size == (96, 32)
