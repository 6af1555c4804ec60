# SPDX-License-Identifier: Apache-2.0
"""What the cases of several operators share."""

import numpy as np


def numbers_below(limit: int) -> np.ndarray:
    return np.random.default_rng(31).integers(0, limit, 500_000)
