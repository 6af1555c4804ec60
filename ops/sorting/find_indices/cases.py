# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Cases, call

cases = Cases(__file__)

cases.gpu("1,000 x 4,096", capturable=False)(
    lambda: call("find_indices", torch.randn(1000, 4096) > 0, mode="nonzero", dimensions=2).beside(torch.nonzero)
)
