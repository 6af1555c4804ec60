# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, Cases

from ops.linalg.cases import well_conditioned

cases = Cases(__file__)


@cases.gpu("16 matrices of 128x128, values")
def _() -> Call:
    root = well_conditioned(16, 128)
    return Call(lambda a: torch.ops.polyop.eigh(a)[0], [root + root.mT]).beside(lambda a: torch.linalg.eigh(a)[0])
