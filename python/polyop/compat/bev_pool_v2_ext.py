# SPDX-License-Identifier: Apache-2.0
"""`bev_pool_v2_ext`, the compiled part of BEVDet, FlashOcc and others, in whichever package they keep it, also on the
CPU: functions write into outputs that the caller allocates."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop import functional
from polyop.compat._ranges import ranges

__all__ = ["bev_pool_v2_backward", "bev_pool_v2_forward"]


def bev_pool_v2_forward(
    depth: Tensor, feat: Tensor, out: Tensor, ranks_depth: Tensor, ranks_feat: Tensor, ranks_bev: Tensor,
    interval_lengths: Tensor, interval_starts: Tensor,
) -> None:  # fmt: skip
    """depth [B, N, D, H, W], feat [B, N, H, W, C] -> out [B, Z, Y, X, C]."""
    cells = out.view(1, -1, *out.shape[-2:])
    cells.copy_(
        functional.bev_pool_v2(
            depth.flatten(0, -4), feat.flatten(0, -4), ranks_depth, ranks_feat, ranks_bev, interval_starts,
            interval_lengths, *cells.shape[1:3],
        )
    )  # fmt: skip


def bev_pool_v2_backward(
    out_grad: Tensor, depth_grad: Tensor, feat_grad: Tensor, depth: Tensor, feat: Tensor, ranks_depth: Tensor,
    ranks_feat: Tensor, ranks_bev: Tensor, interval_lengths: Tensor, interval_starts: Tensor,
) -> None:  # fmt: skip
    """Writes the gradients of the depths and features at the ranks of the intervals."""
    ranks, _ = ranges(interval_starts, interval_starts + interval_lengths)
    at_depth, at_feat = ranks_depth[ranks].long(), ranks_feat[ranks].long()
    rows = out_grad.flatten(0, -2)[ranks_bev[ranks].long()]
    features = feat.flatten(0, -2)
    of_depth = torch.zeros_like(depth).flatten().index_add_(0, at_depth, (rows * features[at_feat]).sum(1))
    of_feat = torch.zeros_like(features).index_add_(0, at_feat, rows * depth.flatten()[at_depth][:, None])
    depth_grad.view(-1)[at_depth] = of_depth[at_depth]
    feat_grad.view(features.shape)[at_feat] = of_feat[at_feat]
