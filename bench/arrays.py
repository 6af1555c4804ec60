# SPDX-License-Identifier: Apache-2.0
"""Times polyop.numpy and what people call on NumPy arrays: OpenCV, torchvision, shapely.

python bench/arrays.py [--threads 1,2]     prints a table in Markdown: milliseconds, the minimum and median of 11 calls

Rivals that are not installed are left out, with a line that says so (requirements/bench.txt has all). Results are
compared before they are timed.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from timing import interleaved

import polyop.numpy as pn

Call = Callable[[], Any]


def times(function: Call) -> tuple[float, float]:
    """Returns the minimum and the median, in milliseconds."""
    measured = interleaved({"": function}, seconds=5, rounds=11, least=1)[""]
    return min(measured), statistics.median(measured)


def package(name: str) -> Any:
    """Returns the module, or None with a line on stderr."""
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError) as error:  # torchvision raises the latter if its compiled part does not load
        print(f"without {name}: {str(error).splitlines()[0]}", file=sys.stderr)
        return None


def boxes_of(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    corners = rng.random((count, 2)) * 1000
    boxes = np.concatenate([corners, corners + 10 + rng.random((count, 2)) * 90], 1).astype(np.float32)
    return boxes, (rng.permutation(count).astype(np.float32) + 1) / count


def xywh(boxes: np.ndarray) -> np.ndarray:
    return np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1).astype(np.float64)


def suppressions(count: int) -> Iterator[tuple[str, str, Call, Call]]:
    boxes, scores = boxes_of(count, np.random.default_rng(0))
    title = f"nms, {count:,} boxes"

    def ours() -> np.ndarray:
        return pn.nms(boxes, scores, iou_threshold=0.5)

    if cv2 := package("cv2"):
        rectangles = xywh(boxes)
        yield title, "cv2.dnn.NMSBoxes", ours, lambda: cv2.dnn.NMSBoxes(rectangles, scores, 0.0, 0.5)
    if torchvision := package("torchvision"):
        torch = importlib.import_module("torch")
        b, s = torch.from_numpy(boxes), torch.from_numpy(scores)
        yield title, "torchvision.ops.nms", ours, lambda: torchvision.ops.nms(b, s, 0.5).numpy()


def rotated_boxes(count: int, extent: float, rng: np.random.Generator) -> np.ndarray:
    """Returns boxes as center, width, height, angle in radians."""
    center, size, angle = rng.random((count, 2)) * extent, 10 + rng.random((count, 2)) * 40, rng.random((count, 1)) * 3
    return np.concatenate([center, size, angle], 1).astype(np.float32)


def rotated_overlaps(count: int) -> Iterator[tuple[str, str, Call, Call]]:
    rng = np.random.default_rng(2)
    a, b = rotated_boxes(count, 100, rng), rotated_boxes(count, 100, rng)
    if shapely := package("shapely"):
        yield (
            f"IoU of {count:,} x {count:,} rotated boxes",
            "shapely",
            lambda: pn.box_iou_rotated(a, b),
            lambda: polygons_iou(shapely, polygons(shapely, a), polygons(shapely, b)),
        )


def polygons(shapely: Any, boxes: np.ndarray) -> Any:
    """Returns the polygons of boxes: center, width, height, angle in radians."""
    center, size, angle = boxes[:, None, :2], boxes[:, None, 2:4], boxes[:, 4]
    x, y = np.moveaxis(np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]]) * size, -1, 0)
    cosine, sine = np.cos(angle)[:, None], np.sin(angle)[:, None]
    return shapely.polygons(center + np.stack([x * cosine - y * sine, x * sine + y * cosine], -1))


def polygons_iou(shapely: Any, a: Any, b: Any) -> np.ndarray:
    intersection = shapely.area(shapely.intersection(a[:, None], b))
    return intersection / (shapely.area(a)[:, None] + shapely.area(b) - intersection)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", default="1,2", help="numbers of threads, such as 1,2")
    threads = [int(count) for count in parser.parse_args().threads.split(",")]
    print("| call | rival | threads | polyop.numpy ms | median | rival ms | median | times as fast |")
    print("|---|---|---|---|---|---|---|---|")
    cases = [
        *(row for count in (10, 1000, 20_000) for row in suppressions(count)),
        *(row for count in (10, 300) for row in rotated_overlaps(count)),
    ]
    for title, name, ours, rival in cases:
        np.testing.assert_allclose(np.ravel(ours()), np.ravel(rival()), rtol=1e-3, atol=1e-4, err_msg=name)
        for count in threads:
            pn.set_num_threads(count)
            if torch := sys.modules.get("torch"):
                torch.set_num_threads(count)
            (mine, mine_median), (its, its_median) = times(ours), times(rival)
            print(
                f"| {title} | {name} | {count} | {mine:.3f} | {mine_median:.3f} | {its:.3f} | {its_median:.3f} "
                f"| {its / mine:.1f} |"
            )


if __name__ == "__main__":
    main()
