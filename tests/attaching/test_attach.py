# SPDX-License-Identifier: Apache-2.0
"""polyop.attach: every head, compared with decoding and suppression in NumPy, in ONNX Runtime without polyop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
import torch.nn.functional as F
from onnx import TensorProto

import polyop
from polyop.attaching import HEADS, Attached, AttachError, ImageSteps, attach
from tests.support.detectors import F32, Found, cells, corners, detect, iou, random_boxes, write
from tests.support.single_node import session

SIZE = (64, 96)
CLASSES = 3


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def run(path: Path, feeds: dict[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
    """Runs a file in ONNX Runtime without polyop, then with polyop's library, and compares."""
    feeds = feeds or {"images": np.zeros((1, 3, *SIZE), F32)}
    plain = ort.InferenceSession(path)
    names = [o.name for o in plain.get_outputs()]
    alone = plain.run(names, feeds)
    for a, b in zip(alone, session(onnx.load(path)).run(names, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4)
    return dict(zip(names, alone, strict=True))


def check(got: dict[str, np.ndarray], expected: Found) -> None:
    """Compares outputs in EfficientNMS' form."""
    count = len(expected.scores)
    assert count > 2  # else the test shows nothing
    assert got["num_detections"].tolist() == [[count]]
    np.testing.assert_allclose(got["detection_boxes"][0, :count], expected.boxes, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(got["detection_scores"][0, :count], expected.scores, rtol=1e-5)
    assert got["detection_classes"][0, :count].tolist() == expected.labels.tolist()
    for name in ("detection_boxes", "detection_scores", "detection_classes"):
        assert not got[name][0, count:].any()


def yolov8(rng: np.random.Generator, path: Path, classes: int = CLASSES, extra: int = 0, **more: Any) -> np.ndarray:
    """Writes a model of that head. Returns its rows [B, 4 + classes + extra]."""
    count = cells(SIZE)
    rows = np.concatenate(
        [random_boxes(rng, count, SIZE), rng.random((count, classes)), rng.normal(size=(count, extra))], 1
    )
    outputs = {"output0": rows.T[None].astype(F32), **more.pop("outputs", {})}
    write(path, SIZE, outputs, more.pop("metadata", None), **more)
    return rows.astype(F32)


# ---- heads ----


def test_yolov8(rng: np.random.Generator, tmp_path: Path) -> None:
    rows = yolov8(rng, tmp_path / "m.onnx")
    report = attach(tmp_path / "m.onnx", tmp_path / "app.onnx", score_threshold=0.6)
    assert (report.head, report.classes, report.needs_polyop) == ("yolov8", CLASSES, "")
    assert report.why == "output0 [1, 7, 126] has a column for each of the 126 cells"
    check(run(tmp_path / "app.onnx"), detect(corners(rows[:, :4]), rows[:, 4:], score=0.6))


def test_yolov5(rng: np.random.Generator, tmp_path: Path) -> None:
    count = 3 * cells(SIZE)
    rows = np.concatenate([random_boxes(rng, count, SIZE), rng.random((count, 1 + CLASSES)).astype(F32)], 1)
    write(tmp_path / "m.onnx", SIZE, {"output": rows[None]})
    assert attach(tmp_path / "m.onnx", tmp_path / "app.onnx").head == "yolov5"
    check(run(tmp_path / "app.onnx"), detect(corners(rows[:, :4]), rows[:, 5:] * rows[:, 4:5]))


@pytest.mark.parametrize("graph", ["yolox_s", "main_graph"])
def test_yolox(rng: np.random.Generator, tmp_path: Path, graph: str) -> None:
    at, stride = [], []
    for s in (8, 16, 32):
        at += [(x, y) for y in range(SIZE[0] // s) for x in range(SIZE[1] // s)]
        stride += [s] * (len(at) - len(stride))
    rows = np.concatenate([rng.normal(size=(len(at), 4)), rng.random((len(at), 1 + CLASSES))], 1).astype(F32)
    write(tmp_path / "m.onnx", SIZE, {"output": rows[None]}, graph=graph)
    head = "auto"
    if graph == "main_graph":  # YOLOv6 has the same shape
        with pytest.raises(AttachError, match="the head is not certain") as error:
            attach(tmp_path / "m.onnx", tmp_path / "app.onnx")
        assert "--head NAME" in error.value.hint
        head = "yolox"
    assert attach(tmp_path / "m.onnx", tmp_path / "app.onnx", head=head, score_threshold=0.1).head == "yolox"
    s = np.array(stride)[:, None]
    boxes = np.concatenate([(rows[:, :2] + np.array(at)) * s, np.exp(rows[:, 2:4]) * s], 1)
    check(run(tmp_path / "app.onnx"), detect(corners(boxes), rows[:, 5:] * rows[:, 4:5], score=0.1))


def test_yolov10(rng: np.random.Generator, tmp_path: Path) -> None:
    scores = np.sort(rng.random(300).astype(F32))[::-1]
    boxes, labels = corners(random_boxes(rng, 300, SIZE)), rng.integers(0, CLASSES, 300)
    rows = np.concatenate([boxes, scores[:, None], labels[:, None]], 1).astype(F32)
    write(tmp_path / "m.onnx", SIZE, {"output0": rows[None]})
    assert attach(tmp_path / "m.onnx", tmp_path / "app.onnx", score_threshold=0.8, classes=[0, 2]).head == "yolov10"
    keep = np.flatnonzero((scores >= 0.8) & (labels != 1))[:100]
    check(run(tmp_path / "app.onnx"), Found(boxes[keep], scores[keep], labels[keep], keep))


def test_ssd(rng: np.random.Generator, tmp_path: Path) -> None:
    """Boxes are fractions of the image, and class 0 is the background."""
    boxes = (corners(random_boxes(rng, 40, (1, 1)))).astype(F32)
    scores = rng.random((40, CLASSES)).astype(F32)
    write(tmp_path / "m.onnx", SIZE, {"scores": scores[None], "boxes": boxes[None]})
    assert attach(tmp_path / "m.onnx", tmp_path / "app.onnx").head == "ssd"
    pixels = boxes * np.array([*SIZE[::-1]] * 2)
    scores[:, 0] = 0
    check(run(tmp_path / "app.onnx"), detect(pixels, scores, best=False))


def off_anchors(offsets: np.ndarray, anchors: np.ndarray, weights: tuple[float, float]) -> np.ndarray:
    size = anchors[:, 2:] - anchors[:, :2]
    center = anchors[:, :2] + size / 2 + offsets[:, :2] / weights[0] * size
    return corners(np.concatenate([center, np.exp(offsets[:, 2:] / weights[1]) * size], 1))


def test_ssd_with_anchors(rng: np.random.Generator, tmp_path: Path) -> None:
    anchors = corners(random_boxes(rng, 40, SIZE))
    offsets, scores = rng.normal(size=(40, 4)).astype(F32), rng.random((40, CLASSES)).astype(F32)
    write(tmp_path / "m.onnx", SIZE, {"boxes": offsets[None], "scores": scores[None]})
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", head="ssd", anchors=anchors)
    scores[:, 0] = 0
    check(run(tmp_path / "app.onnx"), detect(off_anchors(offsets, anchors, (10, 5)), scores, best=False))


def test_retinanet(rng: np.random.Generator, tmp_path: Path) -> None:
    """The anchors are those that torchvision computes: here of one cell each, by ratio, then by scale."""
    size = (8, 8)
    anchors = []
    for side in (32, 64, 128, 256, 512):
        for ratio in (0.5, 1, 2):
            for i in range(3):
                scale = int(side * 2 ** (i / 3))
                half = np.array([scale / ratio**0.5, scale * ratio**0.5]) / 2
                anchors.append(np.round([*-half, *half]))
    offsets, logits = (rng.normal(size=(45, n)).astype(F32) for n in (4, CLASSES))
    write(tmp_path / "m.onnx", size, {"a": offsets[None], "b": logits[None]})
    report = attach(tmp_path / "m.onnx", tmp_path / "app.onnx", score_threshold=0.6)
    assert report.head == "retinanet"
    got = run(tmp_path / "app.onnx", {"images": np.zeros((1, 3, *size), F32)})
    scores = 1 / (1 + np.exp(-logits))
    check(got, detect(off_anchors(offsets, np.array(anchors), (1, 1)), scores, score=0.6, best=False))


@pytest.mark.parametrize("head", ["detr", "rtdetr"])
def test_detr(rng: np.random.Generator, tmp_path: Path, head: str) -> None:
    boxes, logits = random_boxes(rng, 20, (1, 1)), rng.normal(size=(20, CLASSES + 1)).astype(F32) * 2
    write(tmp_path / "m.onnx", SIZE, {"logits": logits[None], "pred_boxes": boxes[None]})
    with pytest.raises(AttachError, match="'no object' is not in the file"):
        attach(tmp_path / "m.onnx", tmp_path / "app.onnx")
    assert attach(tmp_path / "m.onnx", tmp_path / "app.onnx", head=head, score_threshold=0.4).head == head
    scores = np.exp(logits) / np.exp(logits).sum(1, keepdims=True) if head == "detr" else 1 / (1 + np.exp(-logits))
    scores = scores[:, :-1] if head == "detr" else scores
    order = [i for i in np.argsort(-scores.max(1)) if scores[i].max() >= 0.4]
    pixels = corners(boxes) * np.array([*SIZE[::-1]] * 2)
    check(
        run(tmp_path / "app.onnx"), Found(pixels[order], scores[order].max(1), scores[order].argmax(1), np.array(order))
    )


def test_coco_detr_is_recognized(rng: np.random.Generator, tmp_path: Path) -> None:
    outputs = {"logits": rng.normal(size=(1, 20, 92)).astype(F32), "pred_boxes": random_boxes(rng, 20, (1, 1))[None]}
    report = attach(write(tmp_path / "m.onnx", SIZE, outputs), tmp_path / "app.onnx", image=ImageSteps())
    assert (report.head, report.classes) == ("detr", 92)
    assert report.image == "resize 64x96, NCHW RGB, 0 to 1, mean 0.485,0.456,0.406, std 0.229,0.224,0.225"


def test_efficientnms(rng: np.random.Generator, tmp_path: Path) -> None:
    """Its own outputs have the names of the new ones."""
    boxes, scores = corners(random_boxes(rng, 10, SIZE)), np.sort(rng.random(10).astype(F32))[::-1]
    labels = rng.integers(0, CLASSES, 10).astype(np.int32)
    outputs = {
        "num_detections": np.array([[7]], np.int32),
        "detection_boxes": boxes[None],
        "detection_scores": scores[None],
        "detection_classes": labels[None],
    }
    report = attach(write(tmp_path / "m.onnx", SIZE, outputs), tmp_path / "app.onnx", score_threshold=0.01)
    assert (report.head, report.classes) == ("efficientnms", None)
    check(run(tmp_path / "app.onnx"), Found(boxes[:7], scores[:7], labels[:7], np.arange(7)))


FINAL = {"mmdet": ("dets", "labels"), "mmrotate": ("dets", "labels"), "torchvision": ("boxes", "labels", "scores")}


def of_toolbox(head: str, boxes: np.ndarray, scores: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the outputs of a head of FINAL."""
    if head == "torchvision":
        return {"boxes": boxes, "labels": labels, "scores": scores}
    return {"dets": np.concatenate([boxes, scores[:, None]], 1)[None], "labels": labels[None]}


@pytest.mark.parametrize("count", [30, 0])
@pytest.mark.parametrize("head", FINAL)
def test_detections_of_toolboxes(rng: np.random.Generator, tmp_path: Path, head: str, count: int) -> None:
    """MMDeploy's and torchvision's outputs, of a model that suppresses; MMDeploy's unused rows have the class -1."""
    scores, labels = np.sort(rng.random(count).astype(F32))[::-1], rng.integers(0, CLASSES, count)
    boxes = random_boxes(rng, count, SIZE).astype(F32)
    boxes = np.concatenate([boxes, rng.random((count, 1)).astype(F32)], 1) if head == "mmrotate" else corners(boxes)
    labels[3:4] = -1
    masks = {} if count or head == "mmrotate" else {"masks": np.zeros((1, 0, 28, 28), F32)}
    if head == "torchvision" and masks:
        masks["masks"] = masks["masks"].transpose(1, 0, 2, 3)
    write(tmp_path / "m.onnx", SIZE, {**of_toolbox(head, boxes, scores, labels), **masks})
    report = attach(tmp_path / "m.onnx", tmp_path / "app.onnx", score_threshold=0.4)
    assert (report.head, report.task) == (head, "obb" if head == "mmrotate" else "segment" if masks else "detect")
    got, keep = run(tmp_path / "app.onnx"), np.flatnonzero((scores >= 0.4) & (labels >= 0))
    if count:
        check(got, Found(boxes[keep], scores[keep], labels[keep], keep))
    else:
        assert got["num_detections"].tolist() == [[0]]
        assert got["detection_boxes"].shape == (1, 0, 5 if head == "mmrotate" else 4)
        assert not masks or got["detection_masks"].shape == (1, 0, *SIZE)


def test_a_photo_of_mmdetection(rng: np.random.Generator, tmp_path: Path) -> None:
    """The photo is in the upper left corner, and the border is 0 after the normalization, as mmdet pads."""
    boxes, scores, labels = corners(random_boxes(rng, 9, SIZE)).astype(F32), np.ones(9, F32), np.arange(9) % CLASSES
    write(tmp_path / "m.onnx", SIZE, of_toolbox("mmdet", boxes, scores, labels))
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", image=ImageSteps())
    photo = {"photo": rng.integers(0, 256, (1, 32, 24, 3), dtype=np.uint8)}  # enlarged twice, to 64 x 48
    boxes = np.clip(boxes / 2, 0, [24, 32] * 2)
    check(run(tmp_path / "app.onnx", photo), Found(boxes, scores, labels, np.arange(9)))
    pixels = seen(tmp_path / "app.onnx", "images", photo)
    assert not pixels[..., 48:].any()
    mean, std = np.array([123.675, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])
    np.testing.assert_allclose(pixels[0, :, 0, 0], (photo["photo"][0, 0, 0] - mean) / std, rtol=1e-5)


def test_an_image_without_a_batch(rng: np.random.Generator, tmp_path: Path) -> None:
    """torchvision's detectors take [3, H, W] of any size."""
    boxes, scores, labels = corners(random_boxes(rng, 9, SIZE)).astype(F32), np.ones(9, F32), np.arange(9) % CLASSES
    model = onnx.load(write(tmp_path / "m.onnx", SIZE, of_toolbox("torchvision", boxes, scores, labels)))
    del model.graph.input[0].type.tensor_type.shape.dim[0]
    for dimension in model.graph.input[0].type.tensor_type.shape.dim[1:]:
        dimension.dim_param = "any"
    onnx.save(model, tmp_path / "m.onnx")
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", image=ImageSteps(size=SIZE))
    photo = {"photo": np.zeros((1, 32, 24, 3), np.uint8)}
    check(run(tmp_path / "app.onnx", photo), Found(np.clip(boxes / 2, 0, [24, 32] * 2), scores, labels, np.arange(9)))
    assert seen(tmp_path / "app.onnx", "images", photo).shape == (3, *SIZE)


def pasted(mask: np.ndarray, box: np.ndarray, height: int, width: int) -> np.ndarray:
    """Returns a mask of a box in an image, as mmdet pastes it: by grid_sample."""
    x, y = ((torch.arange(n) + 0.5 - box[i]) / (box[i + 2] - box[i]) * 2 - 1 for i, n in ((0, width), (1, height)))
    grid = torch.stack([x.expand(height, width), y[:, None].expand(height, width)], -1).float()
    return F.grid_sample(torch.from_numpy(mask)[None, None], grid[None], align_corners=False)[0, 0].numpy()


@pytest.mark.parametrize("with_photo", [False, True])
@pytest.mark.parametrize("kind", ["of boxes", "of the image", "torchvision"])
def test_masks_of_toolboxes(rng: np.random.Generator, tmp_path: Path, kind: str, with_photo: bool) -> None:
    """MMDeploy's masks of boxes (28 x 28) and of the image, and torchvision's of the image."""
    count, extents = 5, (14, 20) if kind == "of boxes" else SIZE
    boxes, scores, labels = corners(random_boxes(rng, count, SIZE)).astype(F32), np.ones(count, F32), np.arange(count)
    masks = rng.random((count, *extents), dtype=F32)
    head = kind if kind == "torchvision" else "mmdet"
    masks_of_model = masks[:, None] if head == "torchvision" else masks[None]
    write(tmp_path / "m.onnx", SIZE, {**of_toolbox(head, boxes, scores, labels), "masks": masks_of_model})
    report = attach(tmp_path / "m.onnx", tmp_path / "app.onnx", image=ImageSteps() if with_photo else None)
    assert (report.head, report.task) == (head, "segment")
    height, width = (2 * SIZE[0], 2 * SIZE[1] - 40) if with_photo else SIZE  # the photo is twice as large
    got = run(tmp_path / "app.onnx", {"photo": np.zeros((1, height, width, 3), np.uint8)} if with_photo else None)
    whole = np.array([0, 0, *SIZE[::-1]], F32)
    of_photo = [(boxes[i] if kind == "of boxes" else whole) * (2 if with_photo else 1) for i in range(count)]
    expected = np.stack([pasted(mask, box, height, width) for mask, box in zip(masks, of_photo, strict=True)])
    assert got["detection_masks"].shape == (1, count, height, width)
    clear = np.abs(expected - 0.5) > 1e-4
    if kind != "of boxes" and with_photo:  # beyond the outer centres the border continues, instead of zeros
        clear[:, [0, -1]] = clear[..., [0, -1]] = False
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(got["detection_masks"][0][clear], (expected >= 0.5)[clear])


def test_half_precision(rng: np.random.Generator, tmp_path: Path) -> None:
    rows = yolov8(rng, tmp_path / "m.onnx").astype(np.float16)
    write(tmp_path / "m.onnx", SIZE, {"output0": rows.T[None]}, type=TensorProto.FLOAT16)
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", score_threshold=0.6, image=ImageSteps())
    found = detect(corners(rows[:, :4].astype(F32)), rows[:, 4:], score=0.6)
    found.boxes = np.clip(found.boxes, 0, [*SIZE[::-1]] * 2)
    check(run(tmp_path / "app.onnx", {"photo": np.zeros((1, *SIZE, 3), np.uint8)}), found)


def test_external_data_in_another_folder(rng: np.random.Generator, tmp_path: Path) -> None:
    rows = yolov8(rng, tmp_path / "m.onnx")
    onnx.save(
        onnx.load(tmp_path / "m.onnx"),
        tmp_path / "m.onnx",
        save_as_external_data=True,
        location="m.data",
        size_threshold=0,
    )
    attach(tmp_path / "m.onnx", tmp_path / "new" / "app.onnx", score_threshold=0.6)
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["app.onnx", "m.data"]
    check(run_file(tmp_path / "new" / "app.onnx"), detect(corners(rows[:, :4]), rows[:, 4:], score=0.6))


def run_file(path: Path) -> dict[str, np.ndarray]:
    """Runs a file that has external data."""
    created = polyop.session(path)
    names = [o.name for o in created.get_outputs()]
    return dict(zip(names, created.run(names, {"images": np.zeros((1, 3, *SIZE), F32)}), strict=True))


# ---- tasks ----

ULTRALYTICS = {"names": "{0: 'cat', 1: 'dog', 2: 'bird'}", "stride": "32", "imgsz": "[64, 96]"}


def test_key_points(rng: np.random.Generator, tmp_path: Path) -> None:
    metadata = {"task": "pose", "names": "{0: 'person'}", "kpt_shape": "[5, 3]"}
    rows = yolov8(rng, tmp_path / "m.onnx", classes=1, extra=15, metadata=metadata)
    report = attach(tmp_path / "m.onnx", tmp_path / "app.onnx", score_threshold=0.8, image=ImageSteps())
    assert (report.task, report.classes) == ("pose", 1)
    got = run(tmp_path / "app.onnx", {"photo": np.zeros((1, 128, 192, 3), np.uint8)})
    found = detect(corners(rows[:, :4]), rows[:, 4:5], score=0.8)
    count = len(found.rows)
    expected = rows[found.rows, 5:].reshape(-1, 5, 3) * np.array([2, 2, 1])  # the photo is twice as large
    np.testing.assert_allclose(got["detection_points"][0, :count], expected, rtol=1e-4, atol=1e-4)
    assert not got["detection_points"][0, count:].any()


def test_masks(rng: np.random.Generator, tmp_path: Path) -> None:
    """In the prototypes' cells, and in the photo's pixels."""
    prototypes = rng.normal(size=(1, 4, 16, 24)).astype(F32)
    metadata = {**ULTRALYTICS, "task": "segment"}
    rows = yolov8(rng, tmp_path / "m.onnx", extra=4, metadata=metadata, outputs={"output1": prototypes})
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", score_threshold=0.9)
    found = detect(corners(rows[:, :4]), rows[:, 4:7], score=0.9)
    logits = np.einsum("ne,ehw->nhw", rows[found.rows, 7:], prototypes[0])

    def inside(boxes: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
        x1, y1, x2, y2 = (boxes[:, i, None, None] for i in range(4))
        return (x >= x1) & (x < x2) & (y[:, None] >= y1) & (y[:, None] < y2)

    centers = [(np.arange(n) + 0.5) * 4 for n in (16, 24)]
    expected = (logits > 0) & inside(found.boxes, *centers)
    assert expected.any()
    np.testing.assert_array_equal(run(tmp_path / "app.onnx")["detection_masks"], expected[None])

    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", score_threshold=0.9, image=ImageSteps())
    got = run(tmp_path / "app.onnx", {"photo": np.zeros((1, 100, 96, 3), np.uint8)})
    assert got["detection_masks"].shape == (1, len(found.rows), 100, 96)
    gain, left = 0.64, 17  # of 61 columns, in the middle of 96; Ultralytics rounds 17.5 - 0.1
    y, x = ((np.arange(n) + 0.5) * gain + pad for n, pad in ((100, 0), (96, left)))
    row, column = (np.clip(v / 4 - 0.5, 0, n - 1) for v, n in ((y, 16), (x, 24)))
    r, c = (np.minimum(v.astype(int), n - 2) for v, n in ((row, 16), (column, 24)))
    fr, fc = (row - r)[:, None], column - c
    at = logits[:, r][:, :, c], logits[:, r][:, :, c + 1], logits[:, r + 1][:, :, c], logits[:, r + 1][:, :, c + 1]
    fine = (at[0] * (1 - fc) + at[1] * fc) * (1 - fr) + (at[2] * (1 - fc) + at[3] * fc) * fr
    boxes = (found.boxes - np.array([left, 0, left, 0])) / gain
    expected = (fine > 0) & inside(boxes, np.arange(100) + 0.5, np.arange(96) + 0.5)
    assert np.mean(got["detection_masks"][0] != expected) < 1e-3  # roundings where a logit is 0


def test_masks_of_no_detection(rng: np.random.Generator, tmp_path: Path) -> None:
    prototypes = rng.normal(size=(1, 4, 16, 24)).astype(F32)
    metadata = {**ULTRALYTICS, "task": "segment"}
    yolov8(rng, tmp_path / "m.onnx", extra=4, metadata=metadata, outputs={"output1": prototypes})
    for flat in (False, True):
        attach(tmp_path / "m.onnx", tmp_path / "app.onnx", score_threshold=1, image=ImageSteps(), flat=flat)
        got = run(tmp_path / "app.onnx", {"photo": np.zeros((1, 30, 20, 3), np.uint8)})
        assert got["detection_masks"].shape == ((0, 30, 20) if flat else (1, 1, 30, 20))
        assert not got["detection_masks"].any()


def test_rotated_boxes(rng: np.random.Generator, tmp_path: Path) -> None:
    rows = yolov8(rng, tmp_path / "m.onnx", extra=1, metadata={**ULTRALYTICS, "task": "obb"})
    report = attach(
        tmp_path / "m.onnx", tmp_path / "app.onnx", score_threshold=0.7, iou_threshold=0.3, image=ImageSteps()
    )
    assert "no standard operator intersects rotated boxes" in report.needs_polyop.lower()
    got = session(onnx.load(tmp_path / "app.onnx")).run(None, {"photo": np.zeros((1, 128, 192, 3), np.uint8)})
    count = int(got[0].item())
    assert count > 2
    assert got[1].shape == (1, 100, 5)
    scores = rows[:, 4:7].max(1)
    first = rows[scores.argmax()]
    np.testing.assert_allclose(got[1][0, 0], [*first[:4] * 2, first[7]], rtol=1e-5)  # the angle stays
    kept = {round(float(s), 6) for s in got[2][0, :count]}
    assert len(kept) == count
    assert kept < {round(float(s), 6) for s in scores}
    assert not got[1][0, count:].any()


# ---- choices ----


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ({"agnostic": True}, {"agnostic": True}),
        ({"labels": "all"}, {"best": False}),
        ({"labels": "all", "agnostic": True}, {"best": False, "agnostic": True}),
        ({"classes": ["dog", 0]}, {"classes": (0, 1)}),
        ({"iou_threshold": 0.2, "max_detections": 5}, {"overlap": 0.2, "limit": 5}),
    ],
    ids=str,
)
@pytest.mark.parametrize("as_inputs", [False, True])
def test_options(rng: np.random.Generator, tmp_path: Path, options: dict, rules: dict, as_inputs: bool) -> None:
    rows = yolov8(rng, tmp_path / "m.onnx", metadata=ULTRALYTICS)
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", score_threshold=0.6, threshold_inputs=as_inputs, **options)
    check(run(tmp_path / "app.onnx"), detect(corners(rows[:, :4]), rows[:, 4:], score=0.6, **rules))


@pytest.mark.parametrize("soft", ["linear", "gaussian"])
@pytest.mark.parametrize(("agnostic", "more"), [(False, 0), (True, 0), (False, 1200)])
def test_soft_suppression(rng: np.random.Generator, tmp_path: Path, soft: str, agnostic: bool, more: int) -> None:
    """`more` classes come before those of the best boxes: no score depends on the number of a class."""
    rows = yolov8(rng, tmp_path / "m.onnx", *((more, CLASSES) if more else ()))
    options = {"soft": soft, "sigma": 0.3, "agnostic": agnostic, "score_threshold": 0.5, "max_detections": 40}
    report = attach(tmp_path / "m.onnx", tmp_path / "app.onnx", **options)
    assert "one iteration per box" in report.needs_polyop
    boxes, labels, scores = corners(rows[:, :4]), rows[:, 4:].argmax(1), rows[:, 4:].max(1)
    left, found = {i for i in range(len(rows)) if scores[i] >= 0.5}, []
    while left:
        best = max(left, key=lambda i: scores[i])
        left.remove(best)
        found.append(best)
        for i in sorted(left):
            if agnostic or labels[i] == labels[best]:
                overlap = iou(boxes[i], boxes[best])
                scores[i] *= np.exp(-(overlap**2) / 0.3) if soft == "gaussian" else 1 - overlap * (overlap >= 0.5)
                if scores[i] < 0.5:
                    left.remove(i)
    index = np.array(found[:40])
    names = ("num_detections", "detection_boxes", "detection_scores", "detection_classes")
    got = session(onnx.load(tmp_path / "app.onnx")).run(names, {"images": np.zeros((1, 3, *SIZE), F32)})
    check(dict(zip(names, got, strict=True)), Found(boxes[index], scores[index], labels[index], index))
    if more:
        return  # scores above 1
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", soft=soft, score_threshold=1)
    (number,) = session(onnx.load(tmp_path / "app.onnx")).run(names[:1], {"images": np.zeros((1, 3, *SIZE), F32)})
    assert number.tolist() == [[0]]


def test_thresholds_are_inputs_with_defaults(rng: np.random.Generator, tmp_path: Path) -> None:
    rows = yolov8(rng, tmp_path / "m.onnx")
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", threshold_inputs=True)
    given = {
        "score_threshold": np.array(0.7, F32),
        "iou_threshold": np.array(0.1, F32),
        "max_detections": np.array([4]),
    }
    got = run(tmp_path / "app.onnx", {"images": np.zeros((1, 3, *SIZE), F32), **given})
    assert got["detection_boxes"].shape == (1, 4, 4)
    check(got, detect(corners(rows[:, :4]), rows[:, 4:], score=0.7, overlap=0.1, limit=4))


def test_flat(rng: np.random.Generator, tmp_path: Path) -> None:
    rows = yolov8(rng, tmp_path / "m.onnx")
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", flat=True, score_threshold=0.6)
    got, expected = run(tmp_path / "app.onnx"), detect(corners(rows[:, :4]), rows[:, 4:], score=0.6)
    np.testing.assert_allclose(got["detection_boxes"], expected.boxes, rtol=1e-4, atol=1e-3)
    assert got["detection_classes"].tolist() == expected.labels.tolist()
    assert got["image_indices"].tolist() == [0] * len(expected.labels)


def test_a_batch(rng: np.random.Generator, tmp_path: Path) -> None:
    """Two photos of equal size; in the flat form, the rows of both."""
    rows = np.stack([yolov8(rng, tmp_path / "m.onnx") for _ in range(2)])
    write(tmp_path / "m.onnx", SIZE, {"output0": rows.transpose(0, 2, 1)}, images=2)
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", image=ImageSteps(), score_threshold=0.6)
    photos = {"photo": np.zeros((2, *SIZE, 3), np.uint8)}
    got = run(tmp_path / "app.onnx", photos)
    expected = [detect(corners(r[:, :4]), r[:, 4:], score=0.6) for r in rows]
    for i, found in enumerate(expected):
        found.boxes = np.clip(found.boxes, 0, [*SIZE[::-1]] * 2)
        check({name: value[i : i + 1] for name, value in got.items()}, found)
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", image=ImageSteps(), score_threshold=0.6, flat=True)
    got = run(tmp_path / "app.onnx", photos)
    assert got["image_indices"].tolist() == [i for i, found in enumerate(expected) for _ in found.rows]
    np.testing.assert_allclose(got["detection_scores"], np.concatenate([found.scores for found in expected]))


# ---- photos ----


@pytest.mark.parametrize("extents", [(100, 50), (640, 480), (31, 700), (1, 1)], ids=str)
def test_boxes_in_the_photo(rng: np.random.Generator, tmp_path: Path, extents: tuple[int, int]) -> None:
    """As Ultralytics computes them."""
    rows = yolov8(rng, tmp_path / "m.onnx")
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", image=ImageSteps(), score_threshold=0.6)
    got = run(tmp_path / "app.onnx", {"photo": np.zeros((1, *extents, 3), np.uint8)})
    found = detect(corners(rows[:, :4]), rows[:, 4:], score=0.6)
    gain = min(SIZE[0] / extents[0], SIZE[1] / extents[1])
    pads = [max(round((SIZE[i] - round(extents[i] * gain)) / 2 - 0.1), 0) for i in (1, 0)] * 2
    found.boxes = np.clip((found.boxes - pads) / gain, 0, [*extents[::-1]] * 2)
    check(got, found)


def seen(model: Path, tensor: str, feeds: dict[str, np.ndarray]) -> np.ndarray:
    """Returns the value of a tensor inside a model."""
    proto = onnx.load(model)
    proto.graph.output.append(onnx.ValueInfoProto(name=tensor))
    return session(proto).run([tensor], feeds)[0]


def test_pixels(rng: np.random.Generator, tmp_path: Path) -> None:
    """A photo of the model's size is only normalized; a larger one gets a gray border."""
    yolov8(rng, tmp_path / "m.onnx")
    steps = ImageSteps(color="BGR", range=(0, 255), mean=(1.0, 2.0, 3.0), std=(2.0, 4.0, 8.0))
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", image=steps)
    photo = rng.integers(0, 256, (1, *SIZE, 3), np.uint8)
    expected = ((photo[..., ::-1] - np.array([1, 2, 3])) / np.array([2, 4, 8])).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(seen(tmp_path / "app.onnx", "images", {"photo": photo}), expected, rtol=1e-4, atol=1e-4)
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", image=ImageSteps(range=(0, 255)))
    got = seen(tmp_path / "app.onnx", "images", {"photo": np.full((1, 128, 128, 3), 200, np.uint8)})
    assert np.unique(got[..., 16:80]).tolist() == [200]
    assert np.unique(got[..., :16]).tolist() == np.unique(got[..., 80:]).tolist() == [114]


def test_a_size_that_varies(rng: np.random.Generator, tmp_path: Path) -> None:
    yolov8(rng, tmp_path / "m.onnx", dynamic=True)
    with pytest.raises(AttachError, match="expected a fixed height and width"):
        attach(tmp_path / "m.onnx", tmp_path / "app.onnx", image=ImageSteps())
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", image=ImageSteps(size=SIZE), score_threshold=0.6)
    assert seen(tmp_path / "app.onnx", "images", {"photo": np.zeros((1, 9, 9, 3), np.uint8)}).shape[2:] == SIZE
    yolov8(rng, tmp_path / "u.onnx", dynamic=True, metadata={**ULTRALYTICS, "task": "detect"})
    report = attach(tmp_path / "u.onnx", tmp_path / "app.onnx", image=ImageSteps())
    assert report.image.startswith("letterbox 64x96")  # from the metadata


# ---- errors ----


def refused(path: Path, tmp_path: Path, **options: Any) -> str:
    before = (tmp_path / "app.onnx").read_bytes() if (tmp_path / "app.onnx").exists() else None
    with pytest.raises(AttachError) as error:
        attach(path, tmp_path / "app.onnx", **options)
    after = (tmp_path / "app.onnx").read_bytes() if (tmp_path / "app.onnx").exists() else None
    assert before == after
    return str(error.value)


def test_attached_twice(rng: np.random.Generator, tmp_path: Path) -> None:
    yolov8(rng, tmp_path / "m.onnx")
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx")
    assert "has attached steps already" in refused(tmp_path / "app.onnx", tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["app.onnx", "m.onnx"]


def test_outputs_that_fit_no_head(rng: np.random.Generator, tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", SIZE, {"logits": rng.random((1, 1000)).astype(F32)})
    text = refused(path, tmp_path)
    assert "the model's outputs fit no head. Outputs: logits [1, 1000]. Expected " in text
    assert sum(f"{head}: " in text for head in HEADS) == 3, "the heads whose outputs have the most similar ranks"
    assert "head yolov8: the model's outputs do not fit" in refused(path, tmp_path, head="yolov8")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"head": "yolov9000"}, "head: expected auto, yolov5"),
        ({"task": "sing"}, "task: expected detect, segment, pose, obb, map, got 'sing'"),
        ({"task": "pose"}, "expected the number of key points"),
        ({"classes": ["cat"]}, "classes: expected a number below 3, got 'cat'"),
        ({"classes": [3]}, "classes: expected a number below 3, got '3'"),
        ({"score_threshold": 2}, "score_threshold: expected a number in"),
        ({"iou_threshold": 0}, "iou_threshold: expected a number in"),
        ({"max_detections": 0}, "max_detections: expected at least 1"),
        ({"soft": "hard"}, "soft: expected linear or gaussian"),
        ({"soft": "linear", "sigma": 0}, "sigma: expected a number above 0"),
        ({"soft": "linear", "threshold_inputs": True}, "soft suppression is a node with attributes"),
        ({"labels": "some"}, "labels: expected best or all"),
        ({"names": ["a"]}, "names: expected 3, one per class, got 1"),
        ({"anchors": np.zeros((3, 5))}, "anchors: expected corners"),
        ({"image": ImageSteps(size=(1, 1))}, "image: expected the size of input images"),
    ],
    ids=str,
)
def test_options_that_do_not_fit(rng: np.random.Generator, tmp_path: Path, options: dict, said: str) -> None:
    yolov8(rng, tmp_path / "m.onnx")
    assert said in refused(tmp_path / "m.onnx", tmp_path, **options)


def test_the_file_names_its_form(rng: np.random.Generator, tmp_path: Path) -> None:
    yolov8(rng, tmp_path / "m.onnx", metadata=ULTRALYTICS)
    report: Attached = polyop.attach(tmp_path / "m.onnx", tmp_path / "app.onnx")
    noted = {entry.key: entry.value for entry in onnx.load(tmp_path / "app.onnx").metadata_props}
    assert json.loads(noted["polyop.detections"]) == {
        "head": "yolov8",
        "task": "detect",
        "form": "efficientnms",
        "names": ["cat", "dog", "bird"],
    }
    onnx.checker.check_model(str(tmp_path / "app.onnx"), full_check=True)
    assert report.outputs == ("num_detections", "detection_boxes", "detection_scores", "detection_classes")
