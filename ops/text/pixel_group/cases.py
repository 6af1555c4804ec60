# SPDX-License-Identifier: Apache-2.0
from collections import deque

import numpy as np
from benchmark import Call, Cases, Contest, call
from contenders import bytes_of, session
from inputs import PIXELS, scores, uniform

from ops.text.cases import SIDES, lines_of_text, lines_over

cases = Cases(__file__)


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


@cases.cpu("192x360, 4 dimensions, 24 lines")
def _(threads: int) -> Contest:
    kernels, lines = lines_of_text(192, 360)
    labels, regions, rng = lines * kernels[-1], int(lines.max()) + 1, np.random.default_rng(46)
    score = rng.random(lines.shape).astype(np.float32)
    embedding = (rng.uniform(0, 8, (regions, 4))[lines] + rng.normal(0, 0.2, (*lines.shape, 4))).astype(np.float32)
    feeds = {"score": score, "mask": kernels[0], "embedding": embedding, "labels": labels, "contour": kernels[-1]}
    ours = session("polyop::PixelGroup", feeds, threads, ["label", "scores", "counts"],
                   attributes={"kernel_region_num": regions, "distance_threshold": 0.8})  # fmt: skip
    mask = kernels[0].tolist()
    return Contest(
        ours,
        {"loop in Python": lambda: grouped(score, mask, embedding, labels, 0.8, regions)},
        bytes_of(*feeds.values(), labels),
    )


@cases.growth("pixels", 128 * 128, PIXELS)
def _(n: int) -> Call:
    away, lines = lines_over(n)
    kernel, mask = away < 4, away < 10
    embedding = lines[..., None] % 7 + uniform(*lines.shape, 4) * 0.2
    return call("pixel_group", scores(*lines.shape), mask, embedding, lines * kernel, kernel,
                kernel_region_num=int(lines.max()) + 1, distance_threshold=0.8)  # fmt: skip
