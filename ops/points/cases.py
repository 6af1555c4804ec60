# SPDX-License-Identifier: Apache-2.0
"""What the cases of several operators share."""

from inputs import integers
from torch import Tensor


def neighbours(n: int) -> Tensor:
    return integers(n, 1, n // 4, 16)
