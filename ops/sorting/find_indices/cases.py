# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of find_indices."""

import torch
from benchmark import Cases, Contest

cases = Cases(__file__)


@cases.gpu("1,000 x 4,096", capturable=False)
def _() -> Contest:
    x = torch.randn(1000, 4096) > 0
    return Contest(
        lambda: torch.ops.polyop.find_indices(x, mode="nonzero", dimensions=2),
        reads=[x],
        rivals={"torch": lambda: x.nonzero()},
    )
