# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, Cases, call

from ops.linalg.cases import well_conditioned

cases = Cases(__file__)


@cases.gpu("Cholesky, 64 matrices of 64x64")
def _() -> Call:
    root = well_conditioned(64, 64)
    return call("matrix_factors", root @ root.mT, method="cholesky").beside(lambda a: torch.linalg.cholesky_ex(a)[0])
