# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, Cases, call, of
from inputs import POINTS, gaussian, integers, uniform

cases = Cases(__file__)


@cases.growth("points, 16 neighbours of a quarter", 1000, POINTS)
def _(n: int) -> Call:
    """Two weight matrices, 16 channels, 16 neighbours."""
    return call(
        "assign_score_withk",
        uniform(1, n // 4, 16, 2),
        gaussian(1, n, 2, 16),
        gaussian(1, n, 2, 16),
        integers(n, 1, n // 4, 16),
    )


@cases.gradient("assign_score_withk 2x512, 32 neighbours, 8 kernels, 64 channels")
def _() -> Call:
    tensors = [torch.rand(2, 512, 32, 8), torch.randn(2, 1024, 8, 64), torch.randn(2, 1024, 8, 64)]
    return of("assign_score_withk", [*tensors, torch.randint(1024, (2, 512, 32))], (0, 1, 2))


cases.small([(2, 3, 4, 2), (2, 5, 2, 6), (2, 5, 2, 6), lambda: torch.randint(-1, 6, (2, 3, 4))])
