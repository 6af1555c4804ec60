# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of softmax."""

import torch
from benchmark import Cases, Contest

cases = Cases(__file__)


@cases.gpu("8x900x900")
def _() -> Contest:
    x = torch.randn(8, 900, 900)
    return Contest(
        lambda: torch.ops.polyop.softmax(x, axis=-1), reads=[x], rivals={"torch": lambda: torch.softmax(x, -1)}
    )
