# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of order_statistic."""

import torch
from benchmark import Cases, Contest

cases = Cases(__file__)


@cases.gpu("median of 1,000 x 4,096")
def _() -> Contest:
    x = torch.randn(1000, 4096)
    return Contest(
        lambda: torch.ops.polyop.order_statistic(x, statistic="median")[0],
        reads=[x],
        rivals={"torch": lambda: x.median(-1)[0]},
    )
