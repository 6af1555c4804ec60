# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, Cases, call

cases = Cases(__file__)


@cases.gpu("2,000 x 3,000 rows of 64, p = 1")
def _() -> Call:
    return call("cdist", torch.randn(2000, 64), torch.randn(3000, 64), p=1.0).beside(
        lambda a, b: torch.cdist(a, b, 1.0)
    )


cases.small([(2, 3, 4), (2, 5, 4)], p=1.5)
cases.small([(5, 3), (5, 3)], "condensed", condensed=1)
