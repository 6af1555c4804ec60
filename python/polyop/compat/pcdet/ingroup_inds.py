# SPDX-License-Identifier: Apache-2.0
"""`pcdet.ops.ingroup_inds.ingroup_inds_cuda`."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["forward"]


def forward(group_inds: Tensor, out_inds: Tensor) -> None:
    """The index of each element among those of the same group, in their order. The original's order is arbitrary."""
    keys, order = group_inds.sort(stable=True)
    number = torch.arange(len(keys), device=keys.device) - torch.searchsorted(keys, keys)
    out_inds[order] = number.to(out_inds.dtype)
