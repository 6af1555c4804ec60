# SPDX-License-Identifier: Apache-2.0
"""Times of `polyop attach`: preparation and suppression in the file, compared with the usual code around a model.

python bench/attach.py [--threads 1 2] [--counts 1000 10000 100000] [--seconds 1]

The usual code is that of YOLO programs: with NumPy, with OpenCV, and with torchvision where its kernels are installed.
Every detection of the usual code must be one of the file's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from timing import interleaved

import polyop
from polyop.attaching import ImageSteps, attach

sys.path.append(str(Path(__file__).resolve().parent.parent / ".deps" / "openmmlab"))

CLASSES, SIZE = 80, 640
SCORE, IOU, LIMIT = 0.25, 0.5, 300
PER_OBJECT = 50  # candidates
Found = tuple[np.ndarray, np.ndarray, np.ndarray]  # boxes, scores, classes
Suppress = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]  # indices of boxes, scores, classes


def rows_of(count: int) -> np.ndarray:
    """Returns a head's output [1, 84, count]: all rows are candidates, several around each object."""
    rng = np.random.default_rng(0)
    objects = max(count // PER_OBJECT, 1)
    of_object = rng.integers(objects, size=count)
    extent = np.sqrt(objects) * 60  # as crowded for each count
    centres, sizes = rng.uniform(0, extent, (objects, 2)), rng.uniform(30, 90, (objects, 2))
    boxes = [centres[of_object] + rng.normal(0, 4, (count, 2)), sizes[of_object] * rng.uniform(0.85, 1.15, (count, 2))]
    scores = rng.uniform(0, 0.2, (count, CLASSES))
    scores[np.arange(count), rng.integers(CLASSES, size=objects)[of_object]] = rng.uniform(0.3, 1, count)
    return np.ascontiguousarray(np.concatenate([*boxes, scores], 1).T[None], np.float32)


# ---- The usual code ----


def decoded(rows: np.ndarray) -> Found:
    """Returns the candidates: corners, scores and classes."""
    table = rows[0].T
    scores = table[:, 4:]
    classes = scores.argmax(1)
    best = scores[np.arange(len(scores)), classes]
    kept = best >= SCORE
    centre, half = table[kept, :2], table[kept, 2:4] / 2
    return np.concatenate([centre - half, centre + half], 1), best[kept], classes[kept]


def with_numpy(boxes: np.ndarray, scores: np.ndarray, classes: np.ndarray) -> list[int]:
    """Suppresses greedily; classes are moved apart."""
    apart = boxes + classes[:, None] * (boxes.max() + 1)
    areas = (apart[:, 2] - apart[:, 0]) * (apart[:, 3] - apart[:, 1])
    order, kept = np.argsort(-scores, kind="stable"), []
    while len(order) and len(kept) < LIMIT:
        best, order = order[0], order[1:]
        kept.append(int(best))
        low, high = np.maximum(apart[best, :2], apart[order, :2]), np.minimum(apart[best, 2:], apart[order, 2:])
        shared = np.prod(np.maximum(high - low, 0), 1)
        order = order[shared / (areas[best] + areas[order] - shared) <= IOU]
    return kept


def rivals(threads: int) -> Iterator[tuple[str, Suppress]]:
    yield "NumPy", with_numpy
    with suppress(ImportError):
        import cv2

        cv2.setNumThreads(threads)

        def with_opencv(boxes: np.ndarray, scores: np.ndarray, classes: np.ndarray) -> Any:
            extents = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1)
            return cv2.dnn.NMSBoxesBatched(extents, scores, classes.astype(np.int32), SCORE, IOU)[:LIMIT]

        yield "OpenCV", with_opencv
    with suppress(ImportError, RuntimeError):  # torchvision without kernels raises RuntimeError
        import torch
        from torchvision.ops import batched_nms

        torch.set_num_threads(threads)

        def with_torchvision(boxes: np.ndarray, scores: np.ndarray, classes: np.ndarray) -> Any:
            return batched_nms(*map(torch.from_numpy, (boxes, scores, classes)), IOU)[:LIMIT]

        yield "torchvision", with_torchvision


def letterboxed(resize: Callable[[np.ndarray, tuple[int, int]], np.ndarray], photo: np.ndarray) -> np.ndarray:
    """Returns the model's input, prepared by NumPy and a library's resize."""
    scale = min(SIZE / photo.shape[0], SIZE / photo.shape[1])
    height, width = round(photo.shape[0] * scale), round(photo.shape[1] * scale)
    square = np.full((SIZE, SIZE, 3), 114, np.uint8)
    top, left = (SIZE - height) // 2, (SIZE - width) // 2
    square[top : top + height, left : left + width] = resize(photo, (width, height))
    return np.ascontiguousarray(square.transpose(2, 0, 1)[None], np.float32) / 255


def resizers(threads: int) -> Iterator[tuple[str, Callable[[np.ndarray, tuple[int, int]], np.ndarray]]]:
    yield "Pillow", lambda photo, size: np.asarray(Image.fromarray(photo).resize(size, Image.Resampling.BILINEAR))
    with suppress(ImportError):
        import cv2

        cv2.setNumThreads(threads)
        yield "OpenCV", lambda photo, size: cv2.resize(photo, size, interpolation=cv2.INTER_LINEAR)


# ---- The files ----


def head(path: Path, count: int) -> Path:
    """Writes a model that returns its input as the rows of a head."""
    given = helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 4 + CLASSES, count, 1])
    rows = helper.make_tensor_value_info("output0", TensorProto.FLOAT, [1, 4 + CLASSES, count])
    node = helper.make_node("Squeeze", ["images", "axis"], ["output0"])
    graph = helper.make_graph([node], "head", [given], [rows], [numpy_helper.from_array(np.array([3]), "axis")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def detector(path: Path) -> Path:
    """Writes a model of an image that reads each pixel and finds nothing."""
    image = helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, SIZE, SIZE])
    rows = helper.make_tensor_value_info("output0", TensorProto.FLOAT, [1, 4 + CLASSES, 21])
    nodes = [
        helper.make_node("ReduceMin", ["images"], ["darkest"], keepdims=0),
        helper.make_node("Mul", ["darkest", "nothing"], ["output0"]),
    ]
    nothing = numpy_helper.from_array(np.zeros((1, 4 + CLASSES, 21), np.float32), "nothing")
    graph = helper.make_graph(nodes, "detector", [image], [rows], [nothing])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def session(path: Path, threads: int, registered: bool) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    if registered:
        return polyop.session(path, options=options)
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def milliseconds(call: Callable[[], Any], seconds: float) -> float:
    """Returns the median of a call, of at least three."""
    return float(np.median(interleaved({"": call}, seconds, rounds=1000)[""]))


def check(expected: Any, boxes: np.ndarray, got: list[np.ndarray]) -> None:
    count = got[0].item()
    near = np.abs(boxes[np.asarray(expected)][:, None] - got[1][0, None, :count]).max(-1).min(1) < 1e-2
    if count != len(near) or near.mean() < 0.99:  # IoUs at the threshold round differently
        raise AssertionError(f"expected {len(near)} detections, got {count}, {near.sum()} of them equal")


def suppression(folder: Path, count: int, threads: int, seconds: float) -> dict[str, float]:
    """Returns the milliseconds of decoding and suppression."""
    rows, path = rows_of(count), folder / f"{count}.onnx"
    if not path.exists():
        attach(
            head(folder / "head.onnx", count),
            path,
            head="yolov8",
            score_threshold=SCORE,
            iou_threshold=IOU,
            max_detections=LIMIT,
        )
    times, found = {}, decoded(rows)
    sessions = {"file, polyop": session(path, threads, True), "file, without": session(path, threads, False)}
    feeds = {"images": rows[..., None]}
    for name, method in rivals(threads):
        check(method(*found), found[0], sessions["file, polyop"].run(None, feeds))
        times[name] = milliseconds(lambda method=method: method(*decoded(rows)), seconds)
    return {
        **{
            name: milliseconds(lambda created=created: created.run(None, feeds), seconds)
            for name, created in sessions.items()
        },
        **times,
    }


def preparation(folder: Path, extents: tuple[int, int], threads: int, seconds: float) -> dict[str, float]:
    """Returns the milliseconds from a photo's pixels to the smallest value of the model's input."""
    photo = np.random.default_rng(0).integers(0, 256, (*extents, 3), np.uint8)
    model, path = detector(folder / "detector.onnx"), folder / "prepared.onnx"
    if not path.exists():
        attach(model, path, head="yolov8", image=ImageSteps())
    sessions = {"file, polyop": session(path, threads, True), "file, without": session(path, threads, False)}
    plain = session(model, threads, False)
    times = {
        name: milliseconds(lambda created=created: created.run(None, {"photo": photo[None]}), seconds)
        for name, created in sessions.items()
    }
    for name, resize in resizers(threads):
        times[name] = milliseconds(
            lambda resize=resize: plain.run(None, {"images": letterboxed(resize, photo)}), seconds
        )
    return times


def table(title: str, rows: dict[str, dict[str, float]]) -> str:
    columns = list(next(iter(rows.values())))
    lines = [
        [title, *columns],
        ["---"] * (len(columns) + 1),
        *([name, *(f"{times[c]:.3g}" for c in columns)] for name, times in rows.items()),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--counts", type=int, nargs="+", default=[1000, 10_000, 100_000], help="candidates")
    parser.add_argument("--seconds", type=float, default=1, help="for which each contender runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        rows = {
            f"{count:,}, {threads}": suppression(folder, count, threads, options.seconds)
            for count in options.counts
            for threads in options.threads
        }
        print(table("candidates, threads", rows))
        rows = {
            f"{height} x {width}, {threads}": preparation(folder, (height, width), threads, options.seconds)
            for height, width in ((480, 640), (1080, 1920))
            for threads in options.threads
        }
        print(table("photo, threads", rows))


if __name__ == "__main__":
    main()
