# SPDX-License-Identifier: Apache-2.0
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
from polyop.attaching.truth import Truth
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
    for scene in truth[::2]:  # crowds, and more detections than COCO counts
        scene.crowd = np.arange(6) < 2
    found[3] = precision.Detections(np.tile(found[3].boxes, (9, 1)), np.tile(found[3].labels, 9), rng.uniform(size=162))

    def entries(scenes: list[Any]) -> list[dict[str, Any]]:
        return [
            {
                "image_id": i + 1,
                "category_id": int(label),
                "score": score,
                "iscrowd": int(crowd),
                "bbox": [*box[:2], *(box[2:] - box[:2])],
                "area": float(np.prod(box[2:] - box[:2])),
            }
            for i, scene in enumerate(scenes)
            for box, label, score, crowd in zip(
                scene.boxes, scene.labels, scene.scores, precision.crowds(scene), strict=True
            )
        ]

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
    assert 0.2 < evaluation.stats[1] < 0.9
    for iou, expected in ((0.5, evaluation.stats[1]), (0.75, evaluation.stats[2])):
        assert precision.mean_average_precision(truth, found, iou) == pytest.approx(expected)


def test_precision_of_rotated_boxes() -> None:
    """The first box is rotated by 90 degrees about its centre: it shares 4 x 4 of 48."""
    truth = precision.Detections(np.array([[10.0, 10, 4, 8, 0], [30, 30, 4, 8, 0.5]]), np.zeros(2, int), np.ones(2))
    boxes = truth.boxes.copy()
    boxes[0, 4] = np.pi / 2
    found = precision.Detections(boxes, np.zeros(2, int), np.ones(2))
    np.testing.assert_allclose(precision.ious(truth.boxes, found.boxes), [[1 / 3, 0], [0, 1]], atol=1e-5)
    assert precision.mean_average_precision([truth], [found], 0.3) == 1
    assert precision.mean_average_precision([truth], [found], 0.5) == pytest.approx(51 / 101 / 2)


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
    rotated = [[Detection(0, "0", 1, np.array([10, 10, 4, 8, 0.3]))]]
    assert agreement.compare(rotated, rotated, 0.5).coco_precision == 1
    with pytest.raises(AttachError, match="expected boxes of one kind, got boxes of two corners and rotated boxes"):
        agreement.compare(rotated, [[of(0, 0)]], 0.5)


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
        (tmp_path / "m.onnx").rename(tmp_path / f"raw_{name}.onnx")
    write(tmp_path / "net.onnx", SIZE, {"features": np.ones((1, 7), F32)})
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


def test_no_object_at_all_is_an_error(program: str, files: Path) -> None:
    attach(files / "raw_a.onnx", files / "none.onnx", image=ImageSteps(), score_threshold=0.99)
    done = verify(program, files, "none.onnx", "--reference", "onnx=none.onnx")
    assert done.returncode == 1
    assert "nothing was compared: neither the reference nor the model has objects on 2 photo(s)" in done.stderr


def annotate(folder: Path, **more: Any) -> Path:
    """Writes the objects of the photos: those that a.onnx finds, one of them a crowd in x.png, and a missed one in
    y.jpg."""
    boxes = [[72, 56, 16, 16], [24, 24, 32, 16], [0, 0, 20, 20]]
    annotations = [
        {"image_id": image, "category_id": 10 * (i + 1), "bbox": box, "iscrowd": int((image, i) == (1, 0))}
        for image in (1, 2)
        for i, box in enumerate(boxes[: 2 + (image == 2)])
    ]
    content = {
        "images": [{"id": 1, "file_name": "x.png"}, {"id": 2, "file_name": "photos/y.jpg"}],
        "categories": [{"id": id_, "name": f"kind {id_}"} for id_ in (10, 20, 30)],
        "annotations": annotations,
        **more,
    }
    (folder / "truth.json").write_text(json.dumps(content))
    return folder / "truth.json"


def test_truth(program: str, files: Path) -> None:
    annotate(files)
    done = verify(program, files, "a.onnx", "--truth", "truth.json", "--json", "--draw", "worst")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["expected"], report["found"], report["matched"]) == (4, 3, 3)
    assert report["average_precision"] == pytest.approx(2 / 3)
    (worst,) = report["worst"]
    assert (worst["photo"], worst["missing"], worst["additional"]) == ("photos/y.jpg", 1, 0)
    assert (files / worst["drawing"]).is_file()
    done = verify(program, files, "a.onnx", "--truth", "truth.json", "--min-map", "0.9")
    assert done.returncode == 1, done.stderr
    assert "2 photo(s), 4 true objects, 3 detections of the model, 3 of both" in done.stdout


def test_classes_of_the_truth_are_found_by_name_or_by_rank(files: Path) -> None:
    path = annotate(files)
    assert [o.label for o in Truth(path, ("kind 30", "other", "kind 20", "kind 10")).of(Path("y.jpg"))] == [3, 2, 0]
    assert [o.label for o in Truth(path, ("kind 30", "other")).of(Path("y.jpg"))] == [0, 1, 2]
    rotated = {"image_id": 2, "category_id": 10, "bbox": [20, 20, 8, 4, 90]}
    (found,) = Truth(annotate(files, annotations=[rotated]), ()).of(Path("elsewhere/y.jpg"))
    np.testing.assert_allclose(found.box, [20, 20, 8, 4, -np.pi / 2])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"images": [{"id": 1, "file_name": "z.png"}]}, "expected an image with the file_name 'x.png', got none"),
        (
            {"annotations": [{"image_id": 1, "category_id": 7, "bbox": [0, 0, 1, 1]}]},
            "category 7, which is none of categories",
        ),
        ({"annotations": [{"image_id": 1, "bbox": [0, 0, 1, 1]}]}, "expected annotations in COCO's form"),
        (
            {"annotations": [{"image_id": 1, "category_id": 10, "bbox": [0, 0, "a", 1]}]},
            "could not convert string to float: 'a'",
        ),
        ({"annotations": [{"image_id": 1, "category_id": 10, "bbox": [0, 0, 1]}]}, "boxes of 4 or 5 finite numbers"),
        ({"annotations": [{"image_id": [1], "category_id": 10, "bbox": [0, 0, 1, 1]}]}, "unhashable type"),
        ({"images": [{"id": 1, "file_name": 3}]}, "expected annotations in COCO's form"),
        ({"categories": 3}, "expected annotations in COCO's form"),
    ],
    ids=str,
)
def test_damaged_truth(program: str, files: Path, more: dict[str, Any], said: str) -> None:
    annotate(files, **more)
    done = verify(program, files, "a.onnx", "--truth", "truth.json")
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    assert "Traceback" not in done.stderr


def images(program: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [program, "verify", *words, "--images", "photos"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_files_without_attached_steps(program: str, files: Path) -> None:
    """They are attached to both files; the outputs are compared, too, and the detections decide."""
    done = images(program, files, "raw_moved.onnx", "--against", "raw_a.onnx", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["matched"], report["largest_move"]) == (4, pytest.approx(1, rel=1e-4))  # 0.5 in the input's pixels
    assert {t["tensor"]: t["equal"] for t in report["tensors"]} == {"output0": False}
    assert report["tensors"][0]["max_error"] == 0.5
    assert "the steps of `polyop attach` were added to raw_moved.onnx" in report["notes"]
    done = images(program, files, "raw_without.onnx", "--against", "raw_a.onnx")
    assert done.returncode == 1, done.stderr
    assert "lost 2, gained 0, moved by more than a pixel 0" in done.stdout


def test_outputs_of_other_models(program: str, files: Path) -> None:
    """A model without a known head: its outputs decide."""
    done = images(program, files, "net.onnx", "--against", "openvino", "--resize", "model", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [(t["tensor"], t["equal"], t["count"]) for t in report["tensors"]] == [("features", True, 14)]
    assert "detections are not compared: net.onnx: " in report["notes"][0]
    write(files / "other.onnx", SIZE, {"features": np.full((1, 7), 2, F32)})
    done = images(program, files, "net.onnx", "--against", "other.onnx", "--resize", "model")
    assert (done.returncode, "differs: 2 photo(s)" in done.stdout) == (1, True), done.stderr


def test_openvino(program: str, files: Path) -> None:
    done = verify(program, files, "a.onnx", "--reference", "openvino")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 detections of the reference, 4 of the model, 4 of both" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["a.onnx"], 2, "--task detection: expected a reference, got none"),
        (["a.onnx", "--against", "net.onnx"], 1, "net.onnx: "),
        (["a.onnx", "--against", "threads=1", "--bisect"], 2, "--bisect and --layers: expected the inputs of one run"),
        (["a.onnx", "--against", "isa=sse4"], 2, "expected a reference that runs photos, got isa=sse4"),
        (["a.onnx", "--truth", "none.json"], 1, "none.json: No such file"),
        (["a.onnx", "--truth", "x.json", "--reference", "onnx=a.onnx"], 2, "--truth: expected no --against"),
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
