# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, Cases, of
from inputs import PIXELS

from ops.deform.cases import dcn, last_channels

cases = Cases(__file__)

cases.cpu("56x56, 8 groups x 16, 3x3")(lambda threads: dcn(threads, 3))
cases.growth("pixels", 128 * 128, PIXELS)(lambda n: last_channels("dcn_v3", n))


@cases.gradient("dcn_v3 1x64x64x128, 8 groups, 3x3")
def _() -> Call:
    inputs = [torch.randn(1, 64, 64, 128), torch.randn(1, 64, 64, 144), torch.rand(1, 64, 64, 72)]
    return of("dcn_v3", inputs, (0, 1, 2), group=8, group_channels=16, pad_h=1, pad_w=1)


cases.small([(1, 4, 5, 6), (1, 4, 5, 36), (1, 4, 5, 18)], group=2, group_channels=3)
