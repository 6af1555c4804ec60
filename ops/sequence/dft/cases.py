# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, Cases, call

cases = Cases(__file__)


@cases.gpu("64x4,096, one dimension")
def _() -> Call:
    return call("dft", torch.randn(64, 4096, 2)).beside(
        lambda x: torch.view_as_real(torch.fft.fft(torch.view_as_complex(x)))
    )


cases.small([(2, 3, 5, 2)], dimensions=2)
cases.small([(2, 6, 1)], "of-real-numbers", onesided=1)
cases.small([(2, 4, 2)], "to-real-numbers", onesided=1, inverse=1, odd=1)
