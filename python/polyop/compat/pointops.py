# SPDX-License-Identifier: Apache-2.0
"""The package pointops of Pointcept, with its names and arguments, also on the CPU.

Clouds are concatenated: `offset` has the end of each cloud of xyz [n, 3], and `new_offset` those of the queries.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from polyop import functional
from polyop.compat._neighbours import nearest_of_rows

__all__ = [
    "aggregation", "attention_fusion_step", "attention_relation_step", "ball_query", "ball_query_and_group",
    "batch2offset", "farthest_point_sampling", "grouping", "grouping2", "interpolation", "interpolation2", "knn_query",
    "knn_query_and_group", "offset2batch", "query_and_group", "random_ball_query", "subtraction",
]  # fmt: skip

_MISSING = 1e5  # the distance of a neighbour that does not exist


def _ends(offset: Tensor) -> Tensor:
    return torch.cat([offset.new_zeros(1), offset]).long()


def _queries(
    xyz: Tensor, offset: Tensor, new_xyz: Tensor | None, new_offset: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the queries, and the ends of the clouds and of their queries from 0 on."""
    if new_xyz is None or new_offset is None:
        new_xyz, new_offset = xyz, offset
    for name, points, ends in (("offset", xyz, offset), ("new_offset", new_xyz, new_offset)):
        if len(ends) == 0 or int(ends[-1]) != len(points) or (_ends(ends).diff() < 0).any():
            raise ValueError(f"pointops: {name}: expected ascending numbers up to {len(points)}, got {ends.tolist()}")
    if len(offset) != len(new_offset):
        raise ValueError(f"pointops: new_offset: expected {len(offset)} clouds, got {len(new_offset)}")
    return new_xyz, _ends(offset), _ends(new_offset)


def _distances(xyz: Tensor, queries: Tensor, idx: Tensor) -> Tensor:
    distances = (xyz[idx.clamp(min=0)] - queries[:, None]).square().sum(-1).sqrt()
    return torch.where(idx < 0, _MISSING, distances)


@torch.no_grad()
def knn_query(
    nsample: int, xyz: Tensor, offset: Tensor, new_xyz: Tensor | None = None, new_offset: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The nearest points of each query's cloud, nearest first -> (i32 indices [m, nsample], -1 for missing ones,
    distances)."""
    queries, ends, new_ends = _queries(xyz, offset, new_xyz, new_offset)
    idx = nearest_of_rows(xyz, queries, nsample, ends, new_ends)
    return idx.int(), _distances(xyz, queries, idx)


@torch.no_grad()
def ball_query(
    nsample: int, max_radius: float, min_radius: float, xyz: Tensor, offset: Tensor, new_xyz: Tensor | None = None,
    new_offset: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Points at a distance in [min_radius, max_radius) or of the query itself, nearest first -> as `knn_query`. If
    there are more, they are evenly spaced in this order."""
    return _in_shell(nsample, max_radius, min_radius, xyz, offset, new_xyz, new_offset, random=False)


@torch.no_grad()
def random_ball_query(
    nsample: int, max_radius: float, min_radius: float, xyz: Tensor, offset: Tensor, new_xyz: Tensor | None = None,
    new_offset: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`ball_query` in random order, which is one for all queries."""
    return _in_shell(nsample, max_radius, min_radius, xyz, offset, new_xyz, new_offset, random=True)


def _in_shell(
    nsample: int, largest: float, smallest: float, xyz: Tensor, offset: Tensor, new_xyz: Tensor | None,
    new_offset: Tensor | None, random: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    if not smallest < largest:
        raise ValueError(f"pointops: max_radius: expected more than min_radius = {smallest}, got {largest}")
    queries, ends, new_ends = _queries(xyz, offset, new_xyz, new_offset)
    found = [torch.empty(0, nsample, dtype=torch.long, device=xyz.device)]
    for cloud in range(len(ends) - 1):
        first, last, begin, end = (int(v) for v in (*ends[cloud : cloud + 2], *new_ends[cloud : cloud + 2]))
        order = torch.arange(first, last, device=xyz.device)
        order = order[torch.randperm(last - first, device=xyz.device)] if random else order
        for part in queries[begin:end].split(max(1, (1 << 22) // max(1, last - first))):  # pairs at once
            squares = torch.cdist(part.double(), xyz[order].double(), compute_mode="donot_use_mm_for_euclid_dist") ** 2
            inside = (squares <= 1e-5) | ((squares >= smallest**2) & (squares < largest**2))
            key = torch.arange(len(order), device=xyz.device).expand_as(squares) if random else squares
            ranked = torch.where(inside, key, torch.inf).argsort(dim=1, stable=True)
            count = inside.sum(1, keepdim=True)
            slot = torch.arange(nsample, device=xyz.device).expand(len(part), nsample)
            if not random:  # spread over the candidates
                slot = torch.where(count > nsample, (slot * (count.double() / nsample)).long(), slot)
            is_there = slot < count
            chosen = order[ranked.gather(1, slot.clamp(max=max(len(order) - 1, 0)))] if len(order) else slot
            found.append(torch.where(is_there, chosen, -1))
    idx = torch.cat(found)
    return idx.int(), _distances(xyz, queries, idx)


@torch.no_grad()
def farthest_point_sampling(xyz: Tensor, offset: Tensor, new_offset: Tensor) -> Tensor:
    """Points that are far from each other: of each cloud as many as `new_offset` says, from its first one on -> i32."""
    ends, new_ends = _ends(offset).tolist(), _ends(new_offset).tolist()
    parts = [torch.empty(0, dtype=torch.int32, device=xyz.device)]
    for (first, last), (begin, end) in zip(pairwise(ends), pairwise(new_ends), strict=True):
        if end > begin:
            parts.append(functional.furthest_point_sample(xyz[None, first:last].contiguous(), end - begin)[0] + first)
    return torch.cat(parts).int()


def grouping(idx: Tensor, feat: Tensor, xyz: Tensor, new_xyz: Tensor | None = None, with_xyz: bool = False) -> Tensor:
    """The features [n, c] at indices [m, nsample], 0 at -1 -> [m, nsample, c]; `with_xyz` puts the points relative to
    the queries in front."""
    queries = xyz if new_xyz is None else new_xyz
    is_there, at = (idx >= 0)[..., None], idx.long().clamp(min=0)
    features = torch.where(is_there, feat[at], 0.0)
    if not with_xyz:
        return features
    return torch.cat([torch.where(is_there, xyz[at] - queries[:, None], 0.0), features], -1)


def grouping2(input: Tensor, idx: Tensor) -> Tensor:
    """The rows of input [n, c] at indices [m, nsample] -> [m, nsample, c]."""
    return input[idx.long()]


def interpolation(xyz: Tensor, new_xyz: Tensor, feat: Tensor, offset: Tensor, new_offset: Tensor, k: int = 3) -> Tensor:
    """The features [m, c] of the k nearest points, weighted by the reciprocal distances -> [n, c]."""
    idx, distances = knn_query(k, xyz, offset, new_xyz, new_offset)
    weight = 1 / (distances + 1e-8)
    weight = torch.where(idx < 0, 0.0, weight / weight.sum(1, keepdim=True))
    return (feat[idx.long().clamp(min=0)] * weight[..., None]).sum(1)


interpolation2 = interpolation


def subtraction(input1: Tensor, input2: Tensor, idx: Tensor) -> Tensor:
    """Rows [n, c] minus rows of input2 at indices [n, nsample] -> [n, nsample, c]."""
    return input1[:, None] - input2[idx.long()]


def aggregation(input: Tensor, position: Tensor, weight: Tensor, idx: Tensor) -> Tensor:
    """Sums of (input[idx] + position) * weight over nsample: input [n, c], position [n, nsample, c], weight [n,
    nsample, c'], c' a divisor of c -> [n, c]."""
    shares = position.shape[2] // weight.shape[2]
    return ((input[idx.long()] + position) * weight.repeat(1, 1, shares)).sum(1)


def attention_relation_step(
    query: Tensor, key: Tensor, weight: Tensor, index_target: Tensor, index_refer: Tensor
) -> Tensor:
    """Products of queries and keys [n, g, c], weighted by [c], of pairs -> [pairs, g]."""
    return (query[index_target.long()] * key[index_refer.long()] * weight).sum(-1)


def attention_fusion_step(weight: Tensor, value: Tensor, index_target: Tensor, index_refer: Tensor) -> Tensor:
    """Sums of the values [n, g, c] of pairs, weighted by [pairs, g] -> [n, g, c]."""
    return torch.zeros_like(value).index_add(0, index_target.long(), weight[..., None] * value[index_refer.long()])


def knn_query_and_group(
    feat: Tensor, xyz: Tensor, offset: Tensor | None = None, new_xyz: Tensor | None = None,
    new_offset: Tensor | None = None, idx: Tensor | None = None, nsample: int | None = None, with_xyz: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`knn_query`, unless idx is given, and `grouping` -> (features, idx)."""
    if idx is None:
        if nsample is None or offset is None:
            raise ValueError("knn_query_and_group: expected idx, or nsample and offset")
        idx, _ = knn_query(nsample, xyz, offset, new_xyz, new_offset)
    return grouping(idx, feat, xyz, new_xyz, with_xyz), idx


def ball_query_and_group(
    feat: Tensor, xyz: Tensor, offset: Tensor | None = None, new_xyz: Tensor | None = None,
    new_offset: Tensor | None = None, idx: Tensor | None = None, max_radio: float | None = None, min_radio: float = 0,
    nsample: int | None = None, with_xyz: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`ball_query`, unless idx is given, and `grouping` -> (features, idx)."""
    if idx is None:
        if nsample is None or offset is None or max_radio is None:
            raise ValueError("ball_query_and_group: expected idx, or nsample, offset and max_radio")
        idx, _ = ball_query(nsample, max_radio, min_radio, xyz, offset, new_xyz, new_offset)
    return grouping(idx, feat, xyz, new_xyz, with_xyz), idx


def query_and_group(
    nsample: int, xyz: Tensor, new_xyz: Tensor | None, feat: Tensor, idx: Tensor | None, offset: Tensor,
    new_offset: Tensor, dilation: int = 0, with_feat: bool = True, with_xyz: bool = True,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """The nearest points, with `dilation` every (dilation + 1)-th, or fewer apart in a smaller cloud -> idx, or
    (features of `grouping`, idx)."""
    queries = xyz if new_xyz is None else new_xyz
    if idx is None:
        span = 1 + (nsample - 1) * (dilation + 1)
        found, _ = knn_query(span, xyz, offset, queries, new_offset)
        ends, new_ends = _ends(offset).tolist(), _ends(new_offset).tolist()
        parts = []
        for (first, last), (begin, end) in zip(pairwise(ends), pairwise(new_ends), strict=True):
            size = last - first
            step = dilation + 1 if size >= span else (size - 1) / max(nsample - 1, 1)
            parts.append(found[begin:end, [int(step * i) for i in range(nsample)]])
        idx = torch.cat(parts)
    return (grouping(idx, feat, xyz, queries, with_xyz), idx) if with_feat else idx


def offset2batch(offset: Tensor) -> Tensor:
    """The number of each point's cloud."""
    return torch.arange(len(offset), device=offset.device).repeat_interleave(_ends(offset).diff())


def batch2offset(batch: Tensor) -> Tensor:
    """The ends of the clouds of points with these numbers."""
    return batch.bincount().cumsum(0).int()
