# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of cdist."""

import torch
from benchmark import Cases, Contest

cases = Cases(__file__)


@cases.gpu("2,000 x 3,000 rows of 64, p = 1")
def _() -> Contest:
    a, b = torch.randn(2000, 64), torch.randn(3000, 64)
    return Contest(
        lambda: torch.ops.polyop.cdist(a, b, p=1.0), reads=[a, b], rivals={"torch": lambda: torch.cdist(a, b, 1.0)}
    )
