# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np
import torch
from inputs import side_of
from torch import Tensor

SIDES = ((-1, 0), (1, 0), (0, -1), (0, 1))


def lines_of_text(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns kernels [5, H, W] of lines of 24 x 120 pixels, in descending order of size, and each pixel's line."""
    y, x = np.mgrid[:height, :width]
    across, along = np.abs(y % 24 - 12), np.abs(x % 120 - 60)
    kernels = np.stack([(across < 10 - k) & (along < 58 - 2 * k) for k in range(5)])
    number = 1 + y // 24 * (width // 120) + x // 120
    return kernels, number.astype(np.int32)


def lines_over(n: int) -> tuple[Tensor, Tensor]:
    """Returns each pixel's distance from the middle of a line of 24 x 120 pixels, and the number of the line."""
    side = side_of(n)
    y, x = torch.arange(side)[:, None], torch.arange(side)[None]
    lines = y // 24 * math.ceil(side / 120) + x // 120 + 1
    return torch.maximum((y % 24 - 12).abs(), (x % 120 - 60).abs() - 48), lines.int()
