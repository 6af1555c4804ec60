# SPDX-License-Identifier: Apache-2.0
"""Text detection: kernels of text lines that grow over pixels."""

from __future__ import annotations

from collections import deque

import numpy as np
from harness import Case, Contest, bytes_of, session

SIDES = ((-1, 0), (1, 0), (0, -1), (0, 1))


def lines_of_text(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns kernels [5, H, W] of lines of 24 x 120 pixels, in descending order of size, and each pixel's line."""
    y, x = np.mgrid[:height, :width]
    across, along = np.abs(y % 24 - 12), np.abs(x % 120 - 60)
    kernels = np.stack([(across < 10 - k) & (along < 58 - 2 * k) for k in range(5)])
    number = 1 + y // 24 * (width // 120) + x // 120
    return kernels, number.astype(np.int32)


def expanded(masks: list, labels: np.ndarray) -> list[np.ndarray]:
    """The result of a Python loop."""
    height, width = labels.shape
    grown, front = labels.tolist(), deque((int(y), int(x)) for y, x in zip(*labels.nonzero(), strict=True))
    for mask in masks[-2::-1]:
        later = deque()
        while front:
            y, x = front.popleft()
            alone = True
            for dy, dx in SIDES:
                to_y, to_x = y + dy, x + dx
                if not (0 <= to_y < height and 0 <= to_x < width) or not mask[to_y][to_x] or grown[to_y][to_x] > 0:
                    continue
                grown[to_y][to_x] = grown[y][x]
                front.append((to_y, to_x))
                alone = False
            if alone:
                later.append((y, x))
        front = later
    return [np.array(grown, np.int32)]


def contour_expand() -> Case:
    def make(threads: int) -> Contest:
        kernels, lines = lines_of_text(480, 720)
        labels = lines * kernels[-1]
        ours = session("polyop::ContourExpand", {"kernels": kernels, "labels": labels}, threads,
                       attributes={"min_kernel_area": 5})  # fmt: skip
        masks = kernels.tolist()
        return Contest(ours, {"loop in Python": lambda: expanded(masks, labels)}, bytes_of(kernels, labels, labels))

    return Case("contour_expand", "480x720, 5 kernels of 120 lines", make)


def grouped(
    score: np.ndarray, mask: list, embedding: np.ndarray, labels: np.ndarray, threshold: float, regions: int
) -> list[np.ndarray]:
    """The result of a Python loop."""
    height, width = labels.shape
    means = [embedding[labels == r].mean(0).tolist() for r in range(regions)]
    vectors, grown = embedding.tolist(), labels.tolist()
    front = deque((int(y), int(x)) for y, x in zip(*labels.nonzero(), strict=True))
    while front:
        y, x = front.popleft()
        mean = means[grown[y][x]]
        for dy, dx in SIDES:
            to_y, to_x = y + dy, x + dx
            if not (0 <= to_y < height and 0 <= to_x < width) or not mask[to_y][to_x] or grown[to_y][to_x] > 0:
                continue
            if sum((a - b) ** 2 for a, b in zip(mean, vectors[to_y][to_x], strict=True)) < threshold**2:
                grown[to_y][to_x] = grown[y][x]
                front.append((to_y, to_x))
    label = np.array(grown, np.int32)
    counts = np.bincount(label.ravel(), minlength=regions)
    sums = np.bincount(label.ravel(), score.ravel(), regions)
    counts[0] = sums[0] = 0
    return [label, (sums / np.maximum(counts, 1)).astype(np.float32), counts.astype(np.int32)]


def pixel_group() -> Case:
    def make(threads: int) -> Contest:
        kernels, lines = lines_of_text(192, 360)
        labels, regions, rng = lines * kernels[-1], int(lines.max()) + 1, np.random.default_rng(46)
        score = rng.random(lines.shape).astype(np.float32)
        embedding = (rng.uniform(0, 8, (regions, 4))[lines] + rng.normal(0, 0.2, (*lines.shape, 4))).astype(np.float32)
        feeds = {"score": score, "mask": kernels[0], "embedding": embedding, "labels": labels, "contour": kernels[-1]}
        ours = session("polyop::PixelGroup", feeds, threads, ["label", "scores", "counts"],
                       attributes={"kernel_region_num": regions, "distance_threshold": 0.8})  # fmt: skip
        mask = kernels[0].tolist()
        return Contest(ours, {"loop in Python": lambda: grouped(score, mask, embedding, labels, 0.8, regions)},
                       bytes_of(*feeds.values(), labels))  # fmt: skip

    return Case("pixel_group", "192x360, 4 dimensions, 24 lines", make)


CASES = [contour_expand(), pixel_group()]
