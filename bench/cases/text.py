"""Text detection: kernels of text lines grown over pixels."""

from __future__ import annotations

from collections import deque

import numpy as np
from harness import Case, Contest, bytes_of, session

SIDES = ((-1, 0), (1, 0), (0, -1), (0, 1))


def lines_of_text(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Kernels [5, H, W] of lines of 24 x 120 pixels, from the largest to the smallest, and each pixel's line."""
    y, x = np.mgrid[:height, :width]
    across, along = np.abs(y % 24 - 12), np.abs(x % 120 - 60)
    kernels = np.stack([(across < 10 - k) & (along < 58 - 2 * k) for k in range(5)])
    number = 1 + y // 24 * (width // 120) + x // 120
    return kernels.astype(np.uint8), number.astype(np.int32)


def expanded(masks: list, labels: np.ndarray) -> list[np.ndarray]:
    """As a loop in Python."""
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
        return Contest(ours, {"loop in Python": lambda: expanded(masks, labels)}, bytes_of(kernels, labels) * 2)

    return Case("contour_expand", "480x720, 5 kernels of 120 lines", make)


CASES = [contour_expand()]
