# SPDX-License-Identifier: Apache-2.0
"""Clouds of points that follow one another in a tensor. TorchScript compiles the callers of these functions."""

import torch
from torch import Tensor

import polyop._torch.load  # noqa: F401 (torch.ops.polyop)


def queries_at_once(points: int) -> int:
    """Returns how many queries to compare with this number of points in one tensor of distances."""
    return max(1, 4194304 // max(1, points))


def as_matrix(x: Tensor) -> Tensor:
    return (x.reshape(-1, 1) if x.dim() == 1 else x).contiguous()


def pointers(
    x: Tensor, y: Tensor, batch_x: Tensor | None, batch_y: Tensor | None, batch_size: int | None
) -> tuple[Tensor, Tensor]:
    """Returns the ends of the clouds of x and y, from 0 on."""
    if batch_size is None:
        batch_size = 1
        if batch_x is not None and batch_x.numel() > 0:
            batch_size = int(batch_x.max()) + 1
        if batch_y is not None and batch_y.numel() > 0:
            batch_size = max(batch_size, int(batch_y.max()) + 1)
    if batch_size == 1:
        return torch.tensor([0, x.size(0)]), torch.tensor([0, y.size(0)])
    if batch_x is None or batch_y is None:
        raise ValueError("expected batch_x and batch_y, because there are several clouds")
    if batch_x.numel() != x.size(0) or batch_y.numel() != y.size(0):
        raise ValueError("expected a batch index for each point")
    clouds = torch.arange(batch_size + 1, device=x.device)
    return torch.bucketize(clouds, batch_x).cpu(), torch.bucketize(clouds, batch_y).cpu()


def has_kernel(x: Tensor) -> bool:
    """Returns True for points that polyop's kernels search: in up to three dimensions, in at most 32 bits."""
    narrow = x.dtype == torch.float32 or x.dtype == torch.float16 or x.dtype == torch.bfloat16
    return narrow and x.size(1) <= 3 and x.device.type == "cpu"


def in_three_dimensions(x: Tensor) -> Tensor:
    """Returns f32 points [N, 3]; more coordinates are 0. Distances stay the same."""
    return torch.nn.functional.pad(x.float(), [0, 3 - x.size(1)])


def edges(rows: Tensor, columns: Tensor, flow: str, loop: bool) -> Tensor:
    """Returns edges [2, E] in the direction of the flow, from queries (rows) and the points found (columns)."""
    if flow != "source_to_target" and flow != "target_to_source":
        raise ValueError("flow: expected 'source_to_target' or 'target_to_source', got '" + flow + "'")
    if not loop:
        others = rows != columns
        rows, columns = rows[others], columns[others]
    return torch.stack([columns, rows] if flow == "source_to_target" else [rows, columns])
