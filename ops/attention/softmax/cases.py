# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Cases, call

cases = Cases(__file__)

cases.gpu("8x900x900")(
    lambda: call("softmax", torch.randn(8, 900, 900), axis=-1).beside(lambda x: torch.softmax(x, -1))
)
cases.small([(2, 3, 4)], axis=1)
cases.small([(2, 3, 4)], "logarithm", axis=-2, log=1)
