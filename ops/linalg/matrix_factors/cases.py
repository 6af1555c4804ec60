# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of matrix_factors."""

import torch
from benchmark import Cases, Contest

from ops.linalg.cases import well_conditioned

cases = Cases(__file__)


@cases.gpu("Cholesky, 64 matrices of 64x64")
def _() -> Contest:
    root = well_conditioned(64, 64)
    a = root @ root.mT
    return Contest(
        lambda: torch.ops.polyop.matrix_factors(a, method="cholesky")[0], reads=[a],
        rivals={"torch": lambda: torch.linalg.cholesky_ex(a)[0]},
    )  # fmt: skip
