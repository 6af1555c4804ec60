# SPDX-License-Identifier: Apache-2.0
from collections import deque

import numpy as np
import torch
from benchmark import Call, Cases, Contest, call
from contenders import bytes_of, session
from inputs import PIXELS

from ops.text.cases import SIDES, lines_of_text, lines_over

cases = Cases(__file__)


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


@cases.cpu("480x720, 5 kernels of 120 lines")
def _(threads: int) -> Contest:
    kernels, lines = lines_of_text(480, 720)
    labels = lines * kernels[-1]
    ours = session(
        "polyop::ContourExpand", {"kernels": kernels, "labels": labels}, threads, attributes={"min_kernel_area": 5}
    )
    masks = kernels.tolist()
    return Contest(ours, {"loop in Python": lambda: expanded(masks, labels)}, bytes_of(kernels, labels, labels))


@cases.growth("pixels", 128 * 128, PIXELS)
def _(n: int) -> Call:
    away, lines = lines_over(n)
    kernels = torch.stack([away < 10 - 2 * k for k in range(4)])
    return call("contour_expand", kernels, lines * kernels[-1], min_kernel_area=5)
