# SPDX-License-Identifier: Apache-2.0
"""polyop attach, the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

from polyop._commands import attach as command
from polyop._commands.main import main
from polyop.attaching import HEADS
from polyop.attaching.names import COCO, read_names
from polyop.errors import FileError
from tests.support.detectors import F32, cells, random_boxes, write
from tests.support.documented import run_blocks
from tests.support.processes import ROOT, environment

SIZE = (64, 64)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    count = cells(SIZE)
    rows = np.concatenate([random_boxes(rng, count, SIZE), rng.random((count, 2))], 1).astype(F32)
    return write(tmp_path / "m.onnx", SIZE, {"output0": rows.T[None]})


def test_report(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("names.txt").write_text("cat\nbig dog\n")
    words = ["attach", str(model), "-o", "out/app.onnx", "--image", "--color", "BGR", "--names", "names.txt"]
    assert main([*words, "--classes", "big dog", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["head"], report["classes"], report["needs_polyop"]) == ("yolov8", 2, "")
    assert report["image"] == "letterbox 64x64, NCHW BGR, 0 to 1"
    assert main([*words, "--resize", "model", "--range", "0,255", "--flat", "--thresholds-as-inputs"]) == 0
    text = capsys.readouterr().out
    assert "head: yolov8 (detect, 2 classes), because output0 [1, 6, 84] has a column for each of the 84 cells" in text
    assert "image: resize 64x64, NCHW BGR, 0 to 255" in text
    assert "outputs: image_indices, detection_boxes, detection_scores, detection_classes" in text
    inputs = [i.name for i in onnx.load("out/app.onnx").graph.input]
    assert inputs == ["photo", "score_threshold", "iou_threshold", "max_detections"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["none.onnx", "-o", "x.onnx"], 3, "'none.onnx' does not exist"),
        (["m.onnx", "-o", "m.onnx"], 2, "expected another file than the model"),
        (["m.onnx", "-o", "x.onnx", "--haed", "ssd"], 2, "did you mean '--head'?"),
        (["m.onnx", "-o", "x.onnx", "--head", "sdd"], 2, "--head: expected auto, yolov5"),
        (["m.onnx", "-o", "x.onnx", "--head", "ssd"], 1, "m.onnx: head ssd: the model's outputs do not fit"),
        (["m.onnx", "-o", "x.onnx", "--classes", "cat"], 1, "classes: expected a number below 2, got 'cat'"),
        (["m.onnx", "-o", "x.onnx", "--color", "BGR"], 2, "expected --image, too"),
        (["m.onnx", "-o", "x.onnx", "--image", "--resize", "9x9", "--letterbox", "9x9"], 2, "expected one of them"),
        (["m.onnx", "-o", "x.onnx", "--image", "--letterbox", "9x9"], 1, "expected the size of input images"),
        (["m.onnx", "-o", "x.onnx", "--points", "3"], 2, "--points: expected POINTSx2 or POINTSx3"),
        (["m.onnx", "-o", "x.onnx", "--names", "none.txt"], 3, "'none.txt': No such file"),
        (["m.onnx", "-o", "x.onnx", "--anchors", "m.onnx"], 3, "expected a .npy file of numbers"),
    ],
    ids=str,
)
def test_errors(model: Path, words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", *words]) == code
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert not Path("x.onnx").exists()


def test_documentation_page(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    size = (640, 640)
    rows = np.concatenate([random_boxes(rng, cells(size), size), rng.random((cells(size), 3)) ** 9], 1).astype(F32)
    write(tmp_path / "yolov8n.onnx", size, {"output0": rows.T[None]})
    photo = Image.fromarray(rng.integers(0, 256, (90, 120, 3), np.uint8))
    for folder in (".", "photos", "val2017"):
        (tmp_path / folder).mkdir(exist_ok=True)
        photo.save(tmp_path / folder / "photo.jpg")
    truth = {
        "images": [{"id": 1, "file_name": "photo.jpg"}],
        "categories": [{"id": i, "name": f"kind {i}"} for i in (1, 2, 3)],
        "annotations": [{"image_id": 1, "category_id": 2, "bbox": [10, 10, 20, 20], "iscrowd": 0}],
    }
    (tmp_path / "instances_val2017.json").write_text(json.dumps(truth))
    page = ROOT / "docs" / "attach.md"
    assert run_blocks(page, tmp_path, environment(ROOT / "python")) == {"sh", "python"}
    assert Image.open(tmp_path / "found.png").size == (120, 90)
    assert Image.open(tmp_path / "drawn" / "photo.png").size == (120, 90)
    assert np.load(tmp_path / "detections.npz")["num_detections"].item() > 0
    lines = page.read_text()
    assert all(f"`{head}`" in lines for head in HEADS)


def test_the_command_knows_all_heads() -> None:
    """It lists them without importing onnx."""
    assert ("auto", *HEADS) == command._HEADS


def test_names(tmp_path: Path) -> None:
    assert len(read_names("coco")) == len(set(COCO)) == 80
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("empty", "binary"):
        with pytest.raises(FileError, match="expected"):
            read_names(str(tmp_path / name))
