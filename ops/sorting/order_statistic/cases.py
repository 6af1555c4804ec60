# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Cases, call

cases = Cases(__file__)

cases.gpu("median of 1,000 x 4,096")(
    lambda: call("order_statistic", torch.randn(1000, 4096), statistic="median").beside(lambda x: x.median(-1)[0])
)
