# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, Cases, call

cases = Cases(__file__)


@cases.gpu("64x4,096, one dimension")
def _() -> Call:
    return call("dft", torch.randn(64, 4096, 2)).beside(
        lambda x: torch.view_as_real(torch.fft.fft(torch.view_as_complex(x)))
    )
