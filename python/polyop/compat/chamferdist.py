# SPDX-License-Identifier: Apache-2.0
"""The package chamferdist, with its names and arguments, also on the CPU. Points have any number of coordinates."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import torch
from torch import Tensor, nn

from polyop.compat._neighbours import nearest_of_rows

__all__ = ["ChamferDistance", "knn_gather", "knn_points"]

__version__ = "1.0.3"  # whose functions these are


class _Neighbours(NamedTuple):
    dists: Tensor
    idx: Tensor
    knn: Tensor | None


def _lengths(name: str, points: Tensor, lengths: Tensor | None) -> Tensor:
    full = torch.full(points.shape[:1], points.shape[1], device=points.device)
    if lengths is None:
        return full
    if lengths.shape != full.shape or ((lengths < 0) | (lengths > full)).any():
        raise ValueError(f"{name}: expected {len(points)} lengths in [0, {points.shape[1]}], got {lengths.tolist()}")
    return lengths.to(full)


def knn_points(
    p1: Tensor, p2: Tensor, lengths1: Tensor | None = None, lengths2: Tensor | None = None, K: int = 1,  # noqa: N803
    version: int = -1, return_nn: bool = False, return_sorted: bool = True,
) -> _Neighbours:  # fmt: skip
    """The K points of p2 [N, P2, D] nearest to each of p1 [N, P1, D], nearest first: squared distances and indices [N,
    P1, K], 0 where a cloud has fewer points than its length or than K. `version` and `return_sorted` have no effect."""
    del version, return_sorted
    if p1.dim() != 3 or p2.dim() != 3 or p1.shape[0] != p2.shape[0] or p1.shape[2] != p2.shape[2]:
        raise ValueError(f"knn_points: expected [N, P1, D] and [N, P2, D], got {list(p1.shape)} and {list(p2.shape)}")
    of_1, of_2 = _lengths("lengths1", p1, lengths1), _lengths("lengths2", p2, lengths2)
    masks = [torch.arange(p.shape[1], device=p.device) < lengths[:, None] for p, lengths in ((p1, of_1), (p2, of_2))]
    ends = [nn.functional.pad(lengths.cumsum(0), (1, 0)) for lengths in (of_1, of_2)]
    found = nearest_of_rows(p2[masks[1]], p1[masks[0]], K, ends[1], ends[0])
    idx = torch.full((*p1.shape[:2], K), -1, dtype=torch.long, device=p1.device)
    idx[masks[0]] = torch.where(found < 0, -1, found - ends[1][:-1].repeat_interleave(of_1)[:, None])
    is_there, idx = idx >= 0, idx.clamp(min=0)
    near = p2[torch.arange(len(p2), device=p2.device)[:, None, None], idx]
    dists = torch.where(is_there, (p1[:, :, None] - near).square().sum(-1), 0.0)
    return _Neighbours(dists, idx, torch.where(is_there[..., None], near, 0.0) if return_nn else None)


def knn_gather(x: Tensor, idx: Tensor, lengths: Tensor | None = None) -> Tensor:
    """The features x [N, M, U] at the indices [N, L, K] of `knn_points` -> [N, L, K, U], 0 where K exceeds the
    length."""
    if len(x) != len(idx):
        raise ValueError(f"knn_gather: idx: expected {len(x)} clouds, got {len(idx)}")
    result = x[torch.arange(len(x), device=x.device)[:, None, None], idx]
    is_there = torch.arange(idx.shape[2], device=x.device) < _lengths("lengths", x, lengths)[:, None]
    return torch.where(is_there[:, None, :, None], result, 0.0)


def _reduce(values: Tensor, reduction: str | None, dim: int) -> Tensor:
    if reduction is None:
        return values
    return values.sum(dim) if reduction == "sum" else values.mean(dim)


class ChamferDistance(nn.Module):
    """The squared distances of the points of one cloud to the nearest ones of the other."""

    def forward(
        self, source_cloud: Tensor, target_cloud: Tensor, bidirectional: bool = False, reverse: bool = False,
        batch_reduction: str | None = "mean", point_reduction: str | None = "sum",
    ) -> Tensor:  # fmt: skip
        """Clouds [N, P, D] and [N, Q, D]; from source to target, with `reverse` from target to source, with
        `bidirectional` the sum of both. Points are reduced first."""
        for name, value in (("batch_reduction", batch_reduction), ("point_reduction", point_reduction)):
            if value not in ("sum", "mean", None):
                raise ValueError(f"ChamferDistance: {name}: expected 'sum', 'mean' or None, got {value!r}")
        if bidirectional and reverse:
            warnings.warn("ChamferDistance: bidirectional is True, so that reverse has no effect", stacklevel=2)
        pairs = [(source_cloud, target_cloud)] if bidirectional or not reverse else []
        pairs += [(target_cloud, source_cloud)] if bidirectional or reverse else []
        sums = []
        for a, b in pairs:
            of_points = _reduce(knn_points(a, b).dists[..., 0], point_reduction, 1)
            sums.append(_reduce(of_points, batch_reduction, 0))
        return sums[0] if len(sums) == 1 else sums[0] + sums[1]
