# SPDX-License-Identifier: Apache-2.0
"""What the cases of several operators share."""

import torch


def well_conditioned(count: int, size: int) -> torch.Tensor:
    return torch.randn(count, size, size) + size * torch.eye(size)
