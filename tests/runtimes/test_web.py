# SPDX-License-Identifier: Apache-2.0
"""The npm package (tools/wasm.sh) in Node: every operator of the build against the library of this machine, detections
against files with attached heads, and wrong calls."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from polyop._calls import operators
from polyop._functions import Function, functions
from polyop.attaching import ImageSteps, attach
from tests.support import web
from tests.support.array_calls import plain_calls
from tests.support.c_calls import call
from tests.support.detectors import cells, random_boxes, write
from tests.support.processes import ROOT

pytestmark = pytest.mark.slow  # zig compiles its C++ library first
F32 = np.float32
SIZE = (64, 96)
BOXES = np.array([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]], F32)
SCORES = np.array([0.8, 0.9, 0.7], F32)

Run = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def package() -> Path:
    if shutil.which("node") is None:
        subprocess.run([ROOT / "tools" / "setup_system.sh", "nodejs"], check=True, stdin=subprocess.DEVNULL)
    subprocess.run([ROOT / "tools" / "wasm.sh"], check=True, stdin=subprocess.DEVNULL)
    return ROOT / "build" / "wasm" / "package"


@pytest.fixture
def run(package: Path, tmp_path: Path) -> Run:
    return lambda *calls: web.run(package, calls, tmp_path)


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def built(package: Path) -> dict[str, Function]:
    """Returns the functions that have all attributes of an operator of the build, by the operators' names."""
    lines = (package / "operators.js").read_text()
    every = functions(operators(), composites=False).values()
    return {f.record["name"]: f for f in every if not f.row.presets and f"\n  {camel(f.name)}: " in lines}


def call_in_javascript(function: Function, inputs: list[Any], attributes: dict[str, Any]) -> tuple[str, list[Any]]:
    """Returns the call of a node."""
    record = function.record
    given = dict(zip((i["name"] for i in record["inputs"]), inputs, strict=False))
    defaults = {
        a["name"]: float(a["default_text"]) if a["default"] is None else a["default"] for a in record["attributes"]
    }
    options, arguments = {}, []
    for p in function.parameters:
        if p.kind == "input":
            array = given.get(p.sources[0])
            if p.default is not None:
                arguments.append(web.tensor(array))
            elif array is not None:
                options[camel(p.name)] = web.tensor(array)
            continue
        values = [{**defaults, **attributes}[source] for source in p.sources]
        values = [{"$number": str(v).replace("inf", "Infinity")} if isinstance(v, float) else v for v in values]
        options[camel(p.name)] = values if len(values) > 1 else values[0]
    return camel(function.name), [*arguments, options]


def check_every_operator(package: Path, run: Run) -> None:
    found = built(package)
    cases = [(op, node) for op, node in plain_calls() if op in found]
    assert {"nms", "roi_align", "grid_sampler"} <= {op for op, _ in cases}
    results = run(*(call_in_javascript(found[op], node.inputs, node.attributes) for op, node in cases))
    for (op, node), result in zip(cases, results, strict=True):
        expected = call(op, *node.inputs, **node.attributes)
        for a, b in zip(result if isinstance(result, list) else [result], expected, strict=False):
            assert isinstance(a, np.ndarray), (op, result)
            assert a.dtype == b.dtype, op
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4, err_msg=op)


def test_every_operator_as_the_library_of_this_machine(package: Path, run: Run) -> None:
    check_every_operator(package, run)


def test_every_operator_in_chromium(package: Path, tmp_path: Path, not_run: Callable[[str], None]) -> None:
    if shutil.which("chromium") is None:
        not_run("Chromium is not installed (apt install chromium)")
        return
    check_every_operator(package, lambda *calls: web.run_in_chromium(package, calls, tmp_path))


def test_names_order_and_defaults_of_python(package: Path, run: Run) -> None:
    """roi_align has other defaults in Python than in nodes."""
    image, rois = np.random.default_rng(0).random((1, 2, 8, 8), F32), np.array([[0, 1, 1, 6, 5]], F32)
    got = run(
        ("nms", [web.typed(BOXES), web.typed(SCORES)]),
        ("nms", [web.tensor(BOXES), web.tensor(SCORES), {"iouThreshold": 0.9}]),
        ("roiAlign", [web.tensor(image), web.typed(rois), {"outputSize": [2, 3]}]),
        ("nms", [web.tensor(BOXES[:0]), web.tensor(SCORES[:0])]),
    )
    assert [g.tolist() for g in (got[0], got[1], got[3])] == [[1, 2], [1, 0, 2], []]
    attributes = {"output_height": 2, "output_width": 3, "sampling_ratio": -1, "aligned": 0}
    (expected,) = call("roi_align", image, rois, **attributes)
    np.testing.assert_allclose(got[2], expected, rtol=1e-5)
    types = (package / "polyop.d.ts").read_text()
    assert "nms(boxes: Input, scores: Input, options?: {" in types
    assert "    iouThreshold?: number;" in types


WRONG = [
    ([web.tensor(BOXES)], "polyop::nms: expected the arguments (boxes, scores, options), got 1"),
    ([web.tensor(BOXES), web.tensor(SCORES), {"iou": 1}], "polyop::nms: expected options iouThreshold, offset, "),
    (
        [web.tensor(BOXES), web.tensor(SCORES), {"iouThreshold": 2}],
        "attribute 'iouThreshold': expected a number in [0, 1], got 2",
    ),
    ([web.tensor(BOXES), web.tensor(SCORES), {"iouThreshold": "2"}], "'iouThreshold': expected a number, got \"2\""),
    ([web.tensor(BOXES), web.tensor(SCORES), {"offset": 0.5}], "'offset': expected an integer, got 0.5"),
    ([web.tensor(BOXES), web.tensor(SCORES[:2])], "scores"),
    ([web.tensor(BOXES.astype(np.float64)), web.tensor(SCORES)], "f64"),
    ([web.typed(BOXES[:, :3]), web.tensor(SCORES)], "'boxes': expected rows of 4 elements, got Float32Array(9)"),
    ([[[0, 0, 1, 1]], web.tensor(SCORES)], "'boxes': expected a typed array, or a tensor with type, data and dims"),
    ([{**web.tensor(BOXES), "dims": [3, 5]}, web.tensor(SCORES)], "'boxes'.data: expected 15 elements"),
    ([{**web.tensor(BOXES), "dims": [-3, -4]}, web.tensor(SCORES)], "'boxes'.dims: expected integers of at least 0"),
]


def test_wrong_calls_are_errors_and_the_module_lives_on(run: Run) -> None:
    *errors, last = run(*(("nms", given) for given, _ in WRONG), ("nms", [web.tensor(BOXES), web.tensor(SCORES)]))
    for (_, expected), error in zip(WRONG, errors, strict=True):
        assert isinstance(error, ValueError), expected
        assert expected in str(error)
    assert last.tolist() == [1, 2]


def test_outputs_that_do_not_fit_into_memory(run: Run) -> None:
    """A module has at most 4 GiB: sizes beyond it are errors, also where 32 bits would wrap around."""
    image, rois = np.zeros((1, 1, 4, 4), F32), np.array([[0, 0, 0, 3, 3]], F32)
    sizes = [[1 << 16, 1 << 15], [1 << 15, 1 << 15], [1 << 17, 1 << 17], [1 << 30, 1 << 30], [(1 << 16) + 1, 1 << 16]]
    *errors, last = run(
        *(("roiAlign", [web.tensor(image), web.tensor(rois), {"outputSize": size}]) for size in sizes),
        ("nms", [web.tensor(BOXES), web.tensor(SCORES)]),
    )
    assert all(isinstance(error, ValueError) and "polyop::roi_align: " in str(error) for error in errors)
    assert last.tolist() == [1, 2]


def yolo_rows(rng: np.random.Generator, classes: int, extra: int = 0) -> np.ndarray:
    count = cells(SIZE)
    parts = [random_boxes(rng, count, SIZE), rng.random((count, classes)), rng.normal(size=(count, extra))]
    return np.concatenate(parts, 1).astype(F32)


def heads(rng: np.random.Generator) -> dict[str, tuple[dict[str, np.ndarray], dict[str, Any], dict[str, Any]]]:
    """Returns outputs of models, and options of attach() and of decode()."""
    rows, some = yolo_rows(rng, 3), corners_and_labels(rng)
    offsets = rng.normal(size=(1, 9 * 126 + 9 * 3, 4)).astype(F32) * F32(0.1)
    pair = {
        "pred_boxes": (rng.random((1, 20, 4)) * 0.5 + 0.2).astype(F32),
        "logits": rng.normal(size=(1, 20, 4)).astype(F32),
    }
    cell_rows = np.concatenate([rng.normal(size=(126, 4)), rng.random((126, 4))], 1).astype(F32)
    return {
        "yolov8": ({"output0": rows.T[None].copy()}, {}, {}),
        "yolov8, all labels": ({"output0": rows.T[None].copy()}, {"labels": "all", "agnostic": True}, {}),
        "yolov5": ({"output": np.concatenate([rows[:, :4], rows[:, 4:5], rows[:, 4:]], 1)[None]}, {}, {}),
        "yolox": ({"output": cell_rows[None]}, {}, {}),
        "yolov10": ({"output0": some[None]}, {}, {}),
        "ssd": ({"scores": rows[None, :40, 4:], "boxes": rows[None, :40, :4] / F32(100)}, {}, {}),
        "retinanet": ({"boxes": offsets, "logits": rng.normal(size=(1, offsets.shape[1], 3)).astype(F32)}, {}, {}),
        "detr": (pair, {}, {}),
        "rtdetr": (pair, {}, {}),
        "mmdet": ({"dets": some[None, :, :5], "labels": some[None, :, 5].astype(np.int64)}, {}, {}),
    }


def corners_and_labels(rng: np.random.Generator) -> np.ndarray:
    boxes = random_boxes(rng, 300, SIZE)
    corners = np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)
    scores = np.sort(rng.random(300))[::-1]
    return np.column_stack([corners, scores, rng.integers(0, 3, 300)]).astype(F32)


def attached(path: Path, photo: np.ndarray) -> dict[str, np.ndarray]:
    session = ort.InferenceSession(path)
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, {"photo": photo[None]}), strict=True))


NAMES = sorted(heads(np.random.default_rng(0)))


@pytest.mark.parametrize("name", NAMES)
def test_detections_as_those_of_an_attached_file(name: str, run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    outputs, options, _ = heads(rng)[name]
    head = name.partition(",")[0]
    if head == "retinanet":
        outputs = {
            key: value[:, : 9 * sum(-(-64 // s) * -(-96 // s) for s in (8, 16, 32, 64, 128))]
            for key, value in outputs.items()
        }
    write(tmp_path / "m.onnx", SIZE, outputs)
    options = {"score_threshold": 0.3, **options}
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", head=head, image=ImageSteps(), **options)
    photo = rng.integers(0, 256, (100, 70, 3), np.uint8)
    expected = attached(tmp_path / "app.onnx", photo)
    image = {"width": 70, "height": 100, "data": web.typed(photo, "Uint8Array")}
    given = {camel(key): value for key, value in options.items()}
    _, found = run(
        ("letterbox", [image, head, {"size": list(SIZE)}]),
        (
            "decode",
            [
                {key: web.tensor(value) for key, value in outputs.items()},
                head,
                {**given, "photo": web.result(0, "photo")},
            ],
        ),
    )
    count = int(expected["num_detections"][0, 0])
    assert count > 2
    assert [d["label"] for d in found] == expected["detection_classes"][0, :count].tolist()
    np.testing.assert_allclose([d["score"] for d in found], expected["detection_scores"][0, :count], rtol=1e-5)
    np.testing.assert_allclose([d["box"] for d in found], expected["detection_boxes"][0, :count], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("head", ["yolov8", "yolox", "retinanet", "mmdet"])
@pytest.mark.parametrize("extents", [(100, 50), (31, 700), (9, 9)], ids=str)
def test_pixels_as_in_an_attached_file(head: str, extents: tuple[int, int], run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    outputs = heads(rng)[head][0]
    if head == "retinanet":
        outputs = {key: value[:, : 9 * 132] for key, value in outputs.items()}
    write(tmp_path / "m.onnx", SIZE, outputs)
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", head=head, image=ImageSteps())
    photo = rng.integers(0, 256, (*extents, 3), np.uint8)
    proto = onnx.load(tmp_path / "app.onnx")
    proto.graph.output.append(onnx.ValueInfoProto(name="images"))
    expected = ort.InferenceSession(proto.SerializeToString()).run(["images"], {"photo": photo[None]})[0]
    rgba = np.concatenate([photo, np.full((*extents, 1), 255, np.uint8)], 2)
    image = {"width": extents[1], "height": extents[0], "data": web.typed(rgba, "Uint8ClampedArray")}
    (got,) = run(("letterbox", [image, head, {"size": list(SIZE)}]))
    np.testing.assert_allclose(got["tensor"], expected, rtol=1e-4, atol=2e-3 if head in ("yolox", "mmdet") else 1e-4)


def test_masks_points_and_rotated_boxes(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    prototypes = rng.normal(size=(1, 4, 16, 24)).astype(F32)
    photo = rng.integers(0, 256, (100, 70, 3), np.uint8)
    image = {"width": 70, "height": 100, "data": web.typed(photo, "Uint8Array")}
    results = {}
    for task, extra in (("segment", 4), ("pose", 15)):
        outputs = {"output0": yolo_rows(rng, 3, extra).T[None].copy()}
        outputs |= {"output1": prototypes} if task == "segment" else {}
        points = (5, 3) if task == "pose" else None
        write(tmp_path / "m.onnx", SIZE, outputs, {"task": task})
        attach(
            tmp_path / "m.onnx", tmp_path / f"{task}.onnx", head="yolov8", task=task, points=points, image=ImageSteps(),
            score_threshold=0.9,
        )  # fmt: skip
        expected = attached(tmp_path / f"{task}.onnx", photo)
        given = {key: web.tensor(value) for key, value in outputs.items()}
        options = {"task": task, "points": points, "scoreThreshold": 0.9, "photo": web.result(0, "photo")}
        options = {key: value for key, value in options.items() if value is not None}
        calls = [("letterbox", [image, "yolov8", {"size": list(SIZE)}]), ("decode", [given, "yolov8", options])]
        if task == "segment":
            calls.append(("pasteMasks", [web.result(1), given, web.result(0, "photo")]))
        results[task] = expected, run(*calls)
    expected, (_, found, masks) = results["segment"]
    assert masks.shape == (len(found), 100, 70)
    assert masks.any()
    assert np.mean(masks != expected["detection_masks"][0, : len(found)]) < 1e-3
    expected, (_, found) = results["pose"]
    points = np.array([d["points"] for d in found]).reshape(-1, 5, 3)
    np.testing.assert_allclose(points, expected["detection_points"][0, : len(found)], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (({}, "yolo", {}), "head: expected one of yolov5, yolov7, yolov8"),
        (({"a": web.tensor(np.zeros((1, 3, 4, 5), F32))}, "yolov8", {}), "head yolov8: expected [N, 4 + C, B]"),
        (({"a": web.tensor(np.zeros((2, 7, 5), F32))}, "yolov8", {}), "head yolov8: expected outputs for one image"),
        (({"a": web.tensor(np.zeros((1, 7, 5), F32))}, "yolov8", {"threshold": 1}), "options: expected scoreThreshold"),
        (({"a": web.tensor(np.zeros((1, 4, 5), F32))}, "yolov8", {}), "head yolov8: expected [N, 4 + C, B]"),
        (
            ({"a": web.tensor(np.zeros((1, 126, 9), F32))}, "yolox", {}),
            "options: expected photo, or size: [height, width]",
        ),
        (({"a": web.tensor(np.zeros((1, 5, 9), F32))}, "yolox", {"size": [64, 96]}), "head yolox: expected 126 rows"),
    ],
)
def test_wrong_outputs_are_errors(given: tuple[Any, ...], said: str, run: Run) -> None:
    (error,) = run(("decode", list(given)))
    assert isinstance(error, ValueError)
    assert said in str(error)
