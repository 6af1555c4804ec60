# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Cases, Contest

cases = Cases(__file__)


@cases.gpu("16 matrices of 128x128, values")
def _() -> Contest:
    a = torch.randn(16, 128, 128)
    return Contest(lambda: torch.ops.polyop.svd(a)[1], reads=[a], rivals={"torch": lambda: torch.linalg.svd(a)[1]})
