# SPDX-License-Identifier: Apache-2.0
"""The npm package (tools/wasm.sh) in Node: every operator of the build against the library of this machine, detections
against files with attached heads, and wrong calls."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
import web as web_tool
from PIL import Image
from skimage import data

import polyop
from polyop._arrays.calls import KINDS, operators
from polyop._arrays.functions import Function, functions
from polyop.attaching import ImageSteps, attach
from polyop.attaching.heads import HEADS
from tests.support import c_calls, web
from tests.support import call_variants as variants
from tests.support.call_variants import Call
from tests.support.detectors import cells, random_boxes, write
from tests.support.processes import ROOT
from tests.support.torch_calls import CALLS, call_of

pytestmark = pytest.mark.timeout(3600)  # zig compiles its C++ library first
MODULE = pytest.mark.slow
F32 = np.float32
SIZE = (64, 96)
BOXES = np.array([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]], F32)
SCORES = np.array([0.8, 0.9, 0.7], F32)
MOST_BYTES = 2**26  # of an output in comparisons

Run = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def package() -> Path:
    """Returns the package of the preset's operators. POLYOP_WEB_PACKAGE names one that exists."""
    if named := os.environ.get("POLYOP_WEB_PACKAGE"):
        return Path(named).absolute()
    if shutil.which("node") is None:
        subprocess.run([ROOT / "tools" / "setup_system.sh", "nodejs"], check=True, stdin=subprocess.DEVNULL)
    subprocess.run([ROOT / "tools" / "wasm.sh"], check=True, stdin=subprocess.DEVNULL)
    return ROOT / "build" / "wasm" / "package"


@pytest.fixture
def run(package: Path, tmp_path: Path) -> Run:
    return lambda *calls: web.run(package, calls, tmp_path)


@pytest.fixture
def run_scripts(tmp_path: Path) -> Run:
    """Returns a function that calls what needs no module."""
    package = web_tool.write_scripts(tmp_path / "package", {"nms"})
    return lambda *calls: web.run(package, calls, tmp_path, threads=0)


# ---- the operators ---------------------------------------------------------------------------------------


def built(package: Path) -> dict[str, Function]:
    """Returns the functions that have all attributes of an operator of the build, by the operators' names."""
    lines = (package / "operators.js").read_text()
    every = functions(operators(), composites=False).values()
    return {f.record["name"]: f for f in every if not f.row.presets and f"\n  {web_tool.camel(f.name)}: " in lines}


def calls_of(package: Path) -> list[Call]:
    """Returns calls of every operator of the build."""
    found, calls = built(package), []
    for node in CALLS:
        operator, tensors, attributes = call_of(node)
        if operator.name in found:
            flat = [t for item in tensors for t in (item if isinstance(item, list) else [item])]
            arrays = [None if t is None else t.numpy() for t in flat]
            calls.append(Call(operators()[operator.name], arrays, attributes))
    assert {call.record["name"] for call in calls} == set(found)
    return calls


def number(value: Any) -> Any:
    """Returns the value of an attribute in JSON, which has no infinities."""
    if isinstance(value, list):
        return [number(v) for v in value]
    return (
        {"$number": str(value).replace("inf", "Infinity").replace("nan", "NaN")} if isinstance(value, float) else value
    )


def in_javascript(function: Function, call: Call) -> tuple[str, list[Any]]:
    """Returns the call of the package's function."""
    names = [given["name"] for given in call.record["inputs"]]
    given: dict[str, Any] = dict(zip(names, call.inputs, strict=False))
    if call.record["inputs"][-1]["variadic"]:
        given[names[-1]] = call.inputs[len(names) - 1 :]
    defaults = {
        a["name"]: float(a["default_text"]) if a["default"] is None else a["default"] for a in call.record["attributes"]
    }
    options, arguments = {}, []
    for p in function.parameters:
        if p.kind == "variadic":
            arguments.append([web.tensor(array) for array in given[p.sources[0]]])
        elif p.kind == "input":
            array = given.get(p.sources[0])
            if p.default is not None:
                arguments.append(None if array is None else web.tensor(array))
            elif array is not None:
                options[web_tool.camel(p.name)] = web.tensor(array)
        else:
            values = [number({**defaults, **call.attributes}[source]) for source in p.sources]
            options[web_tool.camel(p.name)] = values if len(values) > 1 else values[0]
    return web_tool.camel(function.name), [*arguments, options]


def in_library(function: Function, call: Call) -> list[np.ndarray] | str | None:
    """Returns the results of the library of this machine, its error in JavaScript's words, or None if an output is too
    large to compare."""
    found: dict[int, np.ndarray] = {}
    too_large = []

    def allocate(_: object, output: int, dtype: int, rank: int, shape: Any) -> int:
        extents = [shape[d] for d in range(rank)]
        if np.prod(extents, dtype=object) * 8 > MOST_BYTES:
            too_large.append(output)
            return 0
        found[output] = np.empty(extents, c_calls.TYPES[dtype])
        return found[output].ctypes.data

    kept = [None if a is None else np.asarray(a, order="C") for a in call.inputs]
    kinds = {a["name"]: a["type"] if not a["choices"] else "string" for a in call.record["attributes"]}
    attributes = [c_calls.attribute_of_kind(name, KINDS[kinds[name]], value) for name, value in call.attributes.items()]
    tensors = [c_calls.tensor_of(a) for a in kept]
    error = c_calls.call_raw(call.record["name"], tensors, attributes, allocate=allocate)
    if too_large:
        return None
    if error is None:
        return [found[output] for output in sorted(found)][: function.row.outputs]
    names = {source: web_tool.camel(p.name) for p in function.parameters for source in p.sources}
    return re.sub(r"(?<=['(])\w+(?=[')])", lambda word: names.get(word[0], word[0]), error)


def check_equal(call: Call, got: Any, expected: list[np.ndarray] | str | None) -> None:
    where = f"{call.record['name']}, {call.what}"
    if isinstance(expected, str):
        assert isinstance(got, ValueError), f"{where}: expected {expected}, got {got}"
        assert str(got) == expected, where
        return
    if expected is None:
        assert "internal error" not in str(got), where
        return
    assert not isinstance(got, ValueError), f"{where}: {got}"
    tolerance = 2e-2 if any(a is not None and a.dtype == np.float16 for a in call.inputs) else 1e-4
    for a, b in zip(got if isinstance(got, list) else [got], expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), where
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=where)


def check_every_operator(package: Path, run: Run, kinds: Iterable[Callable[[Call], Iterable[Call]]] = ()) -> None:
    """Compares calls of every operator, and variants of its first call, with the library of this machine."""
    found, calls, seen = built(package), [], set()
    for call in calls_of(package):
        op = call.record["name"]
        if not (kinds and op in seen):
            calls += [c for kind in kinds for c in kind(call)] if kinds else [call]
        seen.add(op)
    results = run(*(in_javascript(found[call.record["name"]], call) for call in calls))
    for call, result in zip(calls, results, strict=True):
        check_equal(call, result, in_library(found[call.record["name"]], call))


@MODULE
@pytest.mark.parametrize("threads", [1, 3])
def test_every_operator_as_the_library_of_this_machine(threads: int, package: Path, tmp_path: Path) -> None:
    check_every_operator(package, lambda *calls: web.run(package, calls, tmp_path, threads))


@MODULE
@pytest.mark.parametrize(
    "kind",
    [variants.special_values, variants.zero_extents, variants.halves, variants.wrong_inputs, variants.wrong_attributes],
)
def test_unusual_and_wrong_calls_as_in_the_library(
    kind: Callable[[Call], Iterable[Call]], package: Path, run: Run
) -> None:
    """Results and messages are the library's, and no call ends the module."""
    check_every_operator(package, run, [kind])


@pytest.fixture
def chromium(not_run: Callable[[str], None]) -> bool:
    """Returns whether Chromium is installed. Where apt has none, the test says so."""
    if shutil.which("chromium") is None:
        install = [ROOT / "tools" / "setup_system.sh", "chromium"]
        done = subprocess.run(install, check=False, capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            not_run(f"Chromium cannot be installed: {' '.join((done.stdout + done.stderr).split())[-300:]}")
            return False
    return True


@MODULE
def test_every_operator_in_chromium(package: Path, tmp_path: Path, chromium: bool) -> None:
    if not chromium:
        return
    for how in ({"threads": 1}, {"threads": 2}, {"threads": 2, "is_isolated": False}):
        run = partial(web.run_in_chromium, package, folder=tmp_path, **how)
        check_every_operator(package, lambda *calls, run=run: run(calls))


@MODULE
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
    (expected,) = c_calls.call("roi_align", image, rois, **attributes)
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
    (
        [{"type": "float32", "data": web.typed(BOXES, "Int32Array"), "dims": [3, 4]}, web.tensor(SCORES)],
        "'boxes'.data: expected Float32Array for float32, got Int32Array(12)",
    ),
    ([{"$detached": 12}, web.tensor(SCORES)], "'boxes': expected elements, got a detached buffer"),
    ([None, web.tensor(SCORES)], "'boxes': expected a typed array, or a tensor with type, data and dims, got null"),
    ([web.tensor(BOXES), web.tensor(SCORES), {"iouThreshold": {"$number": "NaN"}}], "a number in [0, 1], got nan"),
    ([web.tensor(BOXES), web.tensor(SCORES), {"offset": 2**70}], "'offset': expected an integer, got"),
]


@MODULE
def test_wrong_calls_are_errors_and_the_module_lives_on(run: Run) -> None:
    *errors, last = run(*(("nms", given) for given, _ in WRONG), ("nms", [web.tensor(BOXES), web.tensor(SCORES)]))
    for (_, expected), error in zip(WRONG, errors, strict=True):
        assert isinstance(error, ValueError), expected
        assert expected in str(error)
    assert last.tolist() == [1, 2]


@MODULE
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


@MODULE
def test_a_trap_is_an_error_and_the_module_starts_again(package: Path, tmp_path: Path) -> None:
    """Also a trap of a worker, for which the calling thread does not wait forever."""
    copied = shutil.copytree(package, tmp_path / "package")
    for file, line, broken in (
        (
            "module.js",
            "      const error = this",
            "if (globalThis.isBroken) this.#exports.__stack_pointer.value = 8;\n",
        ),
        ("worker.js", "  exports.__wasm_init_tls(tls)", "exports.__stack_pointer.value = 8;\n"),
    ):
        text = (copied / file).read_text()
        assert text.count(line) == 1
        (copied / file).write_text(text.replace(line, broken + line))
    command = ["node", ROOT / "tests" / "support" / "traps.mjs", copied]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, timeout=100)
    trapped = "Error: polyop::box_iou_rotated: out of memory, or an internal error ("
    first, second, *others = json.loads(done.stdout)
    assert first.startswith(trapped)
    assert second == 1000**2 + 20000
    assert others[0].startswith(trapped)
    assert others[1:] == [second, second]


# ---- detectors -------------------------------------------------------------------------------------------


def yolo_rows(rng: np.random.Generator, classes: int, extra: int = 0) -> np.ndarray:
    count = cells(SIZE)
    parts = [random_boxes(rng, count, SIZE), rng.random((count, classes)), rng.normal(size=(count, extra))]
    return np.concatenate(parts, 1).astype(F32)


def heads() -> dict[str, tuple[dict[str, np.ndarray], dict[str, Any]]]:
    """Returns outputs of models, and options of attach() and of decode(), by the head's name and further words."""
    rng = np.random.default_rng(0)
    rows, some, rotated = yolo_rows(rng, 3), corners_and_labels(rng), yolo_rows(rng, 3, 1)
    anchors = 9 * sum(-(-SIZE[0] // s) * -(-SIZE[1] // s) for s in (8, 16, 32, 64, 128))
    offsets, logits = (rng.normal(size=(1, anchors, n)).astype(F32) for n in (4, 3))
    pair = {
        "pred_boxes": (rng.random((1, 20, 4)) * 0.5 + 0.2).astype(F32),
        "logits": rng.normal(size=(1, 20, 4)).astype(F32),
    }
    cell_rows = np.concatenate([rng.normal(size=(126, 4)), rng.random((126, 4))], 1).astype(F32)
    anchored = {"output": np.concatenate([rows[:, :4], rows[:, 4:5], rows[:, 4:]], 1)[None]}
    labels = some[:, 5].astype(np.int64)
    angles = np.concatenate([random_boxes(rng, 300, SIZE), rng.random((300, 1)), some[:, 4:5]], 1).astype(F32)
    return {
        "yolov8": ({"output0": rows.T[None].copy()}, {}),
        "yolov8, all labels": ({"output0": rows.T[None].copy()}, {"labels": "all", "agnostic": True}),
        "yolov8, obb": ({"output0": rotated.T[None].copy()}, {"task": "obb"}),
        "yolov5": (anchored, {}),
        "yolov7": (anchored, {}),
        "yolox": ({"output": cell_rows[None]}, {}),
        "yolov10": ({"output0": some[None]}, {}),
        "yolov26": ({"output0": some[None]}, {}),
        "ssd": ({"scores": rows[None, :40, 4:], "boxes": rows[None, :40, :4] / F32(100)}, {}),
        "retinanet": ({"boxes": offsets * F32(0.1), "logits": logits}, {}),
        "detr": (pair, {}),
        "rtdetr": (pair, {}),
        "efficientnms": (
            {
                "num_detections": np.array([[90]], np.int32),
                "detection_boxes": some[None, :100, :4],
                "detection_scores": some[None, :100, 4],
                "detection_classes": labels[None, :100].astype(np.int32),
            },
            {},
        ),
        "mmdet": ({"dets": some[None, :, :5], "labels": labels[None]}, {}),
        "mmrotate": ({"dets": angles[None], "labels": labels[None]}, {}),
        "torchvision": ({"boxes": some[:, :4], "labels": labels, "scores": some[:, 4]}, {}),
    }


def corners_and_labels(rng: np.random.Generator) -> np.ndarray:
    boxes = random_boxes(rng, 300, SIZE)
    corners = np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)
    scores = np.sort(rng.random(300))[::-1]
    return np.column_stack([corners, scores, rng.integers(0, 3, 300)]).astype(F32)


def attached(path: Path, photo: np.ndarray) -> dict[str, np.ndarray]:
    session = polyop.session(path)
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, {"photo": photo[None]}), strict=True))


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if HEADS[n.partition(",")[0]].is_final else [MODULE]) for n in sorted(heads())],
)
def test_detections_as_those_of_an_attached_file(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Heads of models that suppress need no operator."""
    outputs, options = heads()[name]
    head = name.partition(",")[0]
    run: Run = request.getfixturevalue("run_scripts" if HEADS[head].is_final else "run")
    write(tmp_path / "m.onnx", SIZE, outputs)
    options = {"score_threshold": 0.3, **options}
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", head=head, image=ImageSteps(), **options)
    photo = np.random.default_rng(0).integers(0, 256, (100, 70, 3), np.uint8)
    expected = attached(tmp_path / "app.onnx", photo)
    image = {"width": 70, "height": 100, "data": web.typed(photo, "Uint8Array")}
    given = {web_tool.camel(key): value for key, value in options.items()}
    tensors = {key: web.tensor(value) for key, value in outputs.items()}
    _, found = run(
        ("letterbox", [image, head, {"size": list(SIZE)}]),
        ("decode", [tensors, head, {**given, "photo": web.result(0, "photo")}]),
    )
    count = int(expected["num_detections"][0, 0])
    assert count > 2
    assert [d["label"] for d in found] == expected["detection_classes"][0, :count].tolist()
    np.testing.assert_allclose([d["score"] for d in found], expected["detection_scores"][0, :count], rtol=1e-5)
    np.testing.assert_allclose([d["box"] for d in found], expected["detection_boxes"][0, :count], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("head", ["yolov8", "yolox", "retinanet", "mmdet"])
@pytest.mark.parametrize("extents", [(100, 50), (31, 700), (9, 9)], ids=str)
def test_pixels_as_in_an_attached_file(head: str, extents: tuple[int, int], run_scripts: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    outputs, _ = heads()[head]
    write(tmp_path / "m.onnx", SIZE, outputs)
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", head=head, image=ImageSteps())
    photo = rng.integers(0, 256, (*extents, 3), np.uint8)
    proto = onnx.load(tmp_path / "app.onnx")
    proto.graph.output.append(onnx.ValueInfoProto(name="images"))
    expected = ort.InferenceSession(proto.SerializeToString()).run(["images"], {"photo": photo[None]})[0]
    rgba = np.concatenate([photo, np.full((*extents, 1), 255, np.uint8)], 2)
    image = {"width": extents[1], "height": extents[0], "data": web.typed(rgba, "Uint8ClampedArray")}
    (got,) = run_scripts(("letterbox", [image, head, {"size": list(SIZE)}]))
    np.testing.assert_allclose(got["tensor"], expected, rtol=1e-4, atol=2e-3 if head in ("yolox", "mmdet") else 1e-4)


@MODULE
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


@pytest.mark.parametrize("kind", ["of boxes", "of the image", "torchvision"])
def test_masks_of_the_detections(kind: str, run_scripts: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    some = corners_and_labels(rng)[:9]
    head, extents = "torchvision" if kind == "torchvision" else "mmdet", (14, 20) if kind == "of boxes" else SIZE
    masks = rng.random((9, 1, *extents), F32)
    outputs = {"dets": some[None, :, :5], "labels": some[None, :, 5].astype(np.int64), "masks": masks[None, :, 0]}
    if head == "torchvision":
        outputs = {"boxes": some[:, :4], "labels": some[:, 5].astype(np.int64), "scores": some[:, 4], "masks": masks}
    write(tmp_path / "m.onnx", SIZE, outputs)
    attach(tmp_path / "m.onnx", tmp_path / "app.onnx", head=head, image=ImageSteps(), score_threshold=0.1)
    photo = rng.integers(0, 256, (100, 70, 3), np.uint8)
    expected = attached(tmp_path / "app.onnx", photo)["detection_masks"][0]
    given = {key: web.tensor(value) for key, value in outputs.items()}
    options = {"task": "segment", "scoreThreshold": 0.1, "photo": web.result(0, "photo")}
    image = {"width": 70, "height": 100, "data": web.typed(photo, "Uint8Array")}
    calls = [("letterbox", [image, head, {"size": list(SIZE)}]), ("decode", [given, head, options])]
    got = run_scripts(*calls, ("pasteMasks", [web.result(1), given, web.result(0, "photo")]))[-1]
    assert got.shape == expected.shape
    assert 0 < got.mean() < 1
    assert np.mean(got != expected) < 1e-3


def faces(photo: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    """Returns the boxes and scores that the networks of facenet-pytorch find, before the last suppression."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "faces"))
    cascade, facenet = import_module("cascade"), import_module("facenet")
    networks = facenet.load().MTCNN(keep_all=True)
    found: list[torch.Tensor] = []
    monkeypatch.setattr(cascade, "nested_nms", lambda boxes, scores, _: found.extend((boxes, scores)) or slice(0))
    with torch.no_grad():
        cascade.Cascade(networks.pnet, networks.rnet, networks.onet).eval()(torch.from_numpy(photo)[None])
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("cascade", "facenet", "torchvision", "facenet_pytorch"):
            del sys.modules[name]
    return found[0].numpy(), found[1].numpy()


@MODULE
def test_a_photo_in_a_page(package: Path, tmp_path: Path, chromium: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """From an image element to boxes of the photo."""
    if not chromium:
        return
    photo = data.astronaut()[:400]
    boxes, scores = faces(photo, monkeypatch)
    assert len(boxes) > 1
    inside = boxes * 1.25 + np.array([0, 70] * 2)  # of the letterbox of 640 x 640
    rows = np.concatenate([(inside[:, :2] + inside[:, 2:]) / 2, inside[:, 2:] - inside[:, :2], scores[:, None]], 1)
    (tmp_path / "rows.json").write_text(json.dumps(rows.T.tolist()))
    Image.fromarray(photo).save(tmp_path / "photo.png")
    found = json.loads(web.posted_by(ROOT / "tests" / "support" / "photo.html", package, tmp_path))
    (keep,) = c_calls.call("nms", boxes, scores, iou_threshold=0.5, offset=0)
    np.testing.assert_allclose(found["boxes"], boxes[keep], atol=1e-2)
    image = {"width": 512, "height": 400, "data": web.typed(photo, "Uint8Array")}
    (result,) = web.run(package, [("letterbox", [image, "yolov8", {"size": [640, 640]}])], tmp_path)
    np.testing.assert_allclose(found["sums"], result["tensor"][0].sum((1, 2), np.float64), rtol=1e-5)
    drawn = np.asarray(Image.open(BytesIO(base64.b64decode(found["drawn"].partition(",")[2]))))
    x1, y1, _, y2 = boxes[keep[0]].round().astype(int)
    assert drawn[(y1 + y2) // 2, x1].tolist() == [0, 255, 0, 255]


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
def test_wrong_outputs_are_errors(given: tuple[Any, ...], said: str, run_scripts: Run) -> None:
    (error,) = run_scripts(("decode", list(given)))
    assert isinstance(error, ValueError)
    assert said in str(error)
