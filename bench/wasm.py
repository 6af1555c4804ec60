#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the npm package (tools/wasm.sh) in Node, plain JavaScript, and the library with SSE4, each in one thread.

python bench/wasm.py [PACKAGE]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

os.environ["POLYOP_ISA"] = "sse4"  # before the library is loaded

import polyop.numpy as pn

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 15


def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    found = {}
    for count in (300, 1000, 10000):
        corners, sizes = rng.random((count, 2)) * 640, 10 + rng.random((count, 2)) * 100
        found[f"boxes{count}"] = np.concatenate([corners, corners + sizes], 1)
        found[f"scores{count}"] = rng.permutation(count) / count
    corners = rng.random((300, 2)) * 600
    found["rois"] = np.concatenate([np.zeros((300, 1)), corners, corners + 32 + rng.random((300, 2)) * 160], 1)
    found["features"] = rng.random((1, 256, 50, 50))
    found["grid"] = rng.random((1, 100, 100, 2)) * 2 - 1
    found["prototypes"] = rng.normal(size=(1, 32, 160, 160))
    corners = rng.random((20, 2)) * 400
    boxes = np.concatenate([corners, corners + 80 + rng.random((20, 2)) * 120], 1)
    found["detections"] = np.concatenate([boxes, rng.normal(size=(20, 32))], 1)
    return {name: array.astype(np.float32) for name, array in found.items()}


def paste(rows: np.ndarray, prototypes: np.ndarray) -> None:
    """The masks of the detections in a photo of the size of the model's input, 640 x 640."""
    logits = np.tensordot(rows[:, 4:], prototypes[0], 1)
    for box, plane in zip(rows[:, :4], logits, strict=True):
        x, y = (np.arange(np.ceil(box[i] - 0.5), np.ceil(box[i + 2] - 0.5), dtype=np.float32) for i in (0, 1))
        grid = np.stack(np.meshgrid((x + 0.5) / 320 - 1, (y + 0.5) / 320 - 1), -1)[None]
        _ = pn.grid_sampler(plane[None, None], grid, "bilinear", "border") > 0


def best(run: Callable[[], object]) -> float:
    """Returns the fewest milliseconds of processor time."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times) * 1000


def main(package: str = str(ROOT / "build" / "wasm" / "package")) -> None:
    given = inputs()
    with tempfile.TemporaryDirectory() as folder:
        for name, array in given.items():
            array.tofile(Path(folder, name))
        shapes = {name: array.shape for name, array in given.items()}
        Path(folder, "shapes.json").write_text(json.dumps(shapes))
        command = ["node", ROOT / "bench" / "wasm.mjs", package, folder]
        results = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    features, rois, grid = given["features"], given["rois"], given["grid"]
    runs: dict[str, Callable[[], object]] = {
        f"nms {n}": lambda n=n: pn.nms(given[f"boxes{n}"], given[f"scores{n}"]) for n in (300, 1000, 10000)
    }
    runs["roi_align"] = lambda: pn.roi_align(features, rois, 7, 1 / 16, 2, aligned=True)
    runs["grid_sampler"] = lambda: pn.grid_sampler(features, grid)
    runs["masks"] = lambda: paste(given["detections"], given["prototypes"])
    for name, run in runs.items():
        ours, theirs = results[name]
        print(f"| {name} | {ours:.3g} | {theirs:.3g} | {best(run):.3g} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
