# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Cases, Contest

cases = Cases(__file__)


@cases.gpu("60,000x64 to 6,000 rows, add")
def _() -> Contest:
    data, updates, rows = torch.zeros(6000, 64), torch.randn(60_000, 64), torch.randint(6000, (60_000,))
    at = rows[:, None].expand(-1, 64).contiguous()
    return Contest(
        lambda: torch.ops.polyop.scatter_reduce(data, at, updates, axis=0, reduction="add"),
        reads=[data, at, updates],
        rivals={"torch": lambda: torch.scatter_reduce(data, 0, at, updates, "sum")},
    )
