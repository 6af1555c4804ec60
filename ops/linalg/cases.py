# SPDX-License-Identifier: Apache-2.0
import torch


def well_conditioned(count: int, size: int) -> torch.Tensor:
    return torch.randn(count, size, size) + size * torch.eye(size)
