# SPDX-License-Identifier: Apache-2.0
"""`pcdet.ops.bev_pool.bev_pool_ext`: sums of the features of consecutive points in a cell of the bird's-eye view."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop import functional

__all__ = ["bev_pool_backward", "bev_pool_forward"]


def _cells(
    function: str, geom_feats: Tensor, starts: Tensor, lengths: Tensor, points: int, b: int, d: int, h: int, w: int
) -> Tensor:
    """Returns the cell of each interval, from the coordinates (row, column, layer, sample) of its first point."""
    starts, lengths = starts.long(), lengths.long()
    expected = torch.cat([starts[1:], starts.new_tensor([points])]) if len(starts) else starts
    if len(starts) and (int(starts[0]) < 0 or bool((starts + lengths > expected).any()) or bool((lengths < 0).any())):
        raise ValueError(f"{function}: interval_starts: expected ascending intervals of {points} points")
    row, column, layer, sample = geom_feats[starts].long().unbind(1)
    cells = ((sample * d + layer) * h + row) * w + column
    if len(cells) and not (int(cells.min()) >= 0 and int(cells.max()) < b * d * h * w):
        raise ValueError(
            f"{function}: geom_feats: expected cells in [0, {b * d * h * w}), got {int(cells.min())} to {int(cells.max())}"
        )
    return cells


def bev_pool_forward(
    x: Tensor, geom_feats: Tensor, interval_lengths: Tensor, interval_starts: Tensor, b: int, d: int, h: int, w: int
) -> Tensor:
    """x [N, C], geom_feats i32 [N, 4] -> [b, d, h, w, C]."""
    cells = _cells("bev_pool_forward", geom_feats, interval_starts, interval_lengths, len(x), b, d, h, w)
    result = x.new_zeros(b * d * h * w, x.shape[1])
    if len(cells):
        ends = interval_starts + interval_lengths
        pointers = torch.stack([interval_starts, ends], 1).flatten().long()
        sums = functional.segment_csr(x.detach().contiguous(), pointers)[::2]  # the others lie between two intervals
        result[cells] = sums
    return result.view(b, d, h, w, -1)


def bev_pool_backward(
    out_grad: Tensor, geom_feats: Tensor, interval_lengths: Tensor, interval_starts: Tensor, b: int, d: int, h: int,
    w: int,
) -> Tensor:  # fmt: skip
    """Returns the gradient of x [N, C]; points outside of all intervals get 0."""
    points = len(geom_feats)
    cells = _cells("bev_pool_backward", geom_feats, interval_starts, interval_lengths, points, b, d, h, w)
    grad = out_grad.new_zeros(points, out_grad.shape[4])
    lengths = interval_lengths.long()
    of_point = torch.arange(len(cells), device=cells.device).repeat_interleave(lengths)
    first = lengths.cumsum(0) - lengths
    rows = torch.arange(len(of_point), device=cells.device) - first[of_point] + interval_starts.long()[of_point]
    grad[rows] = out_grad.flatten(0, 3)[cells[of_point]]
    return grad
