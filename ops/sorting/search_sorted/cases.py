# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Cases, call

cases = Cases(__file__)

cases.gpu("100,000 values in 10,000")(
    lambda: call("search_sorted", torch.rand(10_000).sort()[0], torch.rand(100_000)).beside(torch.searchsorted)
)
