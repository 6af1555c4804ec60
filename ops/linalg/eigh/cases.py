# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of eigh."""

import torch
from benchmark import Cases, Contest

from ops.linalg.cases import well_conditioned

cases = Cases(__file__)


@cases.gpu("16 matrices of 128x128, values")
def _() -> Contest:
    root = well_conditioned(16, 128)
    a = root + root.mT
    return Contest(lambda: torch.ops.polyop.eigh(a)[0], reads=[a], rivals={"torch": lambda: torch.linalg.eigh(a)[0]})
