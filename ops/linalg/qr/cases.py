# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Cases, Contest

from ops.linalg.cases import well_conditioned

cases = Cases(__file__)


@cases.gpu("64 matrices of 64x64, triangle")
def _() -> Contest:
    a = well_conditioned(64, 64)
    return Contest(lambda: torch.ops.polyop.qr(a)[1], reads=[a], rivals={"torch": lambda: torch.linalg.qr(a)[1]})
