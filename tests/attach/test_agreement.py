"""polyop.attaching.precision and .agreement, and polyop verify --task detection."""

from __future__ import annotations

import json
import subprocess
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from polyop.attaching import ImageSteps, agreement, attach, precision
from polyop.attaching.drawing import Detection
from polyop.attaching.errors import AttachError
from tests.support.detectors import F32, cells, write
from tests.support.openmmlab import FOLDER as OPENMMLAB

# ---- precision ----


def test_precision_of_a_case_by_hand() -> None:
    """Class 0 has two objects. By descending score: a detection of the first object, a second one of the same object,
    and a detection of the second object. Precisions are 1, 1/2 and 2/3 at recalls 1/2, 1/2 and 1: 51 of the 101
    recalls have the best precision 1, and 50 have 2/3. Class 1 has one object, which is missed.
    """
    of = precision.Detections
    boxes = np.array([[0.0, 0, 10, 10], [20, 20, 30, 30], [40, 40, 50, 50]])
    truth = of(boxes, np.array([0, 0, 1]), np.ones(3))
    found = of(
        np.array([[0.0, 0, 10, 9], [0, 1, 10, 10], [20, 20, 30, 28], [60, 60, 70, 70]]),
        np.array([0, 0, 0, 1]),
        np.array([0.9, 0.8, 0.7, 0.6]),
    )
    expected = (51 + 50 * 2 / 3) / 101 / 2
    assert precision.mean_average_precision([truth], [found]) == pytest.approx(expected)
    assert precision.mean_average_precision([truth], [found], iou=0.85) == pytest.approx(51 / 101 / 2)
    assert precision.mean_average_precision([truth], [truth]) == 1


def test_precision_is_that_of_coco(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (OPENMMLAB / "pycocotools").is_dir(), f"{OPENMMLAB} is missing: run tools/setup.sh"
    monkeypatch.syspath_prepend(str(OPENMMLAB))
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    rng = np.random.default_rng(0)
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


# ---- two models ----


def of(label: int, x: float, score: float = 0.9) -> Detection:
    return Detection(label, str(label), score, np.array([x, 0, x + 10, 10]))


def test_agreement_of_a_case_by_hand() -> None:
    """The first photo has a pair of another class and a pair of IoU 9/11; in the second one, a detection is missing."""
    expected = [[of(0, 0), of(1, 50)], [of(0, 0)]]
    found = [[of(0, 1), of(0, 50, 0.3)], []]
    got = agreement.compare(expected, found, 0.5)
    assert [(p.expected, p.found, p.matched, p.differing) for p in got.photos] == [(2, 2, 1, 2), (1, 0, 0, 1)]
    assert got.average_precision == pytest.approx(51 / 101 / 2)
    assert got.coco_precision == pytest.approx(51 / 101 / 2 * 7 / 10)  # 0.5, 0.55, … 0.8
    assert agreement.compare(expected, expected, 0.5).coco_precision == 1
    assert agreement.compare([[]], [[]], 0.5).average_precision == 1
    assert agreement.compare([[]], [[of(0, 0)]], 0.5).average_precision == 0
    with pytest.raises(AttachError, match="rotated boxes, which are not compared"):
        agreement.compare([[Detection(0, "0", 1, np.zeros(5))]], [[]], 0.5)


SIZE = (64, 64)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Writes a detector, one whose boxes differ by a pixel, one that misses a box, and two photos."""
    rows = np.zeros((cells(SIZE), 6), F32)
    rows[5], rows[9] = (20, 24, 16, 8, 0, 0.9), (40, 40, 8, 8, 0.6, 0)
    moved, without = rows.copy(), rows.copy()
    moved[[5, 9], 0] += 0.5
    without[9] = 0
    for name, of_file in (("a", rows), ("moved", moved), ("without", without)):
        write(tmp_path / "m.onnx", SIZE, {"output0": of_file.T[None]})
        attach(tmp_path / "m.onnx", tmp_path / f"{name}.onnx", image=ImageSteps(), flat=name == "moved")
    (tmp_path / "photos").mkdir()
    for name in ("x.png", "y.jpg"):
        Image.new("RGB", (128, 96)).save(tmp_path / "photos" / name)
    return tmp_path


def verify(program: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [program, "verify", *words, "--task", "detection", "-i", "photos"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_files_that_agree(program: str, files: Path) -> None:
    done = verify(program, files, "moved.onnx", "--reference", "onnx=a.onnx", "--json", "--draw", "worst")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    counts = {key: report[key] for key in ("photos", "expected", "found", "matched", "worst", "average_precision")}
    assert counts == {"photos": 2, "expected": 4, "found": 4, "matched": 4, "worst": [], "average_precision": 1}
    assert report["coco_precision"] < 1  # a shift by half a pixel of the input
    assert not (files / "worst").exists()


def test_files_that_differ(program: str, files: Path) -> None:
    done = verify(program, files, "without.onnx", "--reference", "onnx=a.onnx", "--draw", "worst")
    assert done.returncode == 1, done.stderr
    assert "2 photo(s), 4 detections of the reference, 2 of the model, 2 of both" in done.stdout
    assert "mean average precision 0.5000" in done.stdout
    assert "differs: expected a mean average precision of at least 0.95" in done.stdout
    drawings = sorted((files / "worst").iterdir())
    assert [file.name for file in drawings] == ["1_x.png", "2_y.png"]
    assert Image.open(drawings[0]).size == (2 * 128, 96)
    assert verify(program, files, "without.onnx", "--reference", "onnx=a.onnx", "--min-map", "0.5").returncode == 0


def test_openvino(program: str, files: Path) -> None:
    done = verify(program, files, "a.onnx", "--reference", "openvino")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 detections of the reference, 4 of the model, 4 of both" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["a.onnx"], 2, "--task detection: expected another reference, got 'kernels'"),
        (["a.onnx", "--reference", "onnx=m.onnx"], 1, "m.onnx: expected an input of pixels u8[1, H, W, 3], got none"),
        (["a.onnx", "--reference", "onnx=a.onnx", "-i", "none"], 3, "'none' does not exist"),
    ],
    ids=str,
)
def test_errors(program: str, files: Path, words: list[str], code: int, said: str) -> None:
    done = verify(program, files, *words)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_photo_is_named(program: str, files: Path) -> None:
    (files / "photos" / "z.png").write_bytes((files / "photos" / "x.png").read_bytes()[:60])
    done = verify(program, files, "a.onnx", "--reference", "onnx=a.onnx")
    assert done.returncode == 3
    assert "photos/z.png" in done.stderr
