# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of dft."""

import torch
from benchmark import Cases, Contest

cases = Cases(__file__)


@cases.gpu("64x4,096, one dimension")
def _() -> Contest:
    signal = torch.randn(64, 4096, 2)
    return Contest(
        lambda: torch.ops.polyop.dft(signal), reads=[signal],
        rivals={"torch": lambda: torch.view_as_real(torch.fft.fft(torch.view_as_complex(signal)))},
    )  # fmt: skip
