# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of search_sorted."""

import torch
from benchmark import Cases, Contest

cases = Cases(__file__)


@cases.gpu("100,000 values in 10,000")
def _() -> Contest:
    sequence, values = torch.rand(10_000).sort()[0], torch.rand(100_000)
    return Contest(
        lambda: torch.ops.polyop.search_sorted(sequence, values), reads=[sequence, values],
        rivals={"torch": lambda: torch.searchsorted(sequence, values)},
    )  # fmt: skip
