# SPDX-License-Identifier: Apache-2.0
"""Voxels and views from above: voxelization, scatter, sparse convolution, pooling."""

from __future__ import annotations

from typing import Any

import gpu_rivals
import torch
from torch import Tensor

import polyop.functional as ops
from gpu_cases.cases import F16, F32, Call, Contest, case, differentiable, mmcv_rival

POINTS = 120_000
GRID: dict[str, Any] = {"voxel_size": [0.25, 0.25, 8.0], "point_cloud_range": [-50.0, -50, -5, 50, 50, 3]}


def points() -> Tensor:
    position = torch.randn(POINTS, 3) * torch.tensor([20.0, 20, 1]) - torch.tensor([0, 0, 1.0])
    return torch.cat([position, torch.rand(POINTS, 2)], 1)


def grid_tensors() -> tuple[Tensor, Tensor]:
    """Returns the size of a voxel and the range, which MMCV reads on the CPU."""
    return (
        torch.tensor(GRID["voxel_size"], device="cpu"),
        torch.tensor(GRID["point_cloud_range"], device="cpu"),
    )


def hard(deterministic: bool) -> Contest:
    cloud, size_and_range = points(), grid_tensors()

    def mmcv() -> list[Tensor]:
        voxels, coors = torch.zeros(40_000, 20, 5), torch.zeros(40_000, 3, dtype=torch.int32)
        counts, count = torch.zeros(40_000, dtype=torch.int32), torch.zeros((), dtype=torch.int64, device="cpu")
        gpu_rivals.mmcv().hard_voxelize_forward(
            cloud, *size_and_range, voxels, coors, counts, count, 20, 40_000, 3, deterministic
        )
        return [t[: int(count)] for t in (voxels, coors, counts)]

    def ours() -> list[Tensor]:
        return list(torch.ops.polyop.hard_voxelize(cloud, **GRID, max_num_points=20, max_voxels=40_000)[:3])

    def same(a: Any, b: Any) -> float:
        return abs(len(a[0]) - len(b[0])) / len(a[0])

    # MMCV's other kernel lists the voxels, and fills them, in another order at every call.
    return Contest(ours, [cloud], mmcv_rival(mmcv), same=None if deterministic else same)


_TITLE = "120,000 points, pillars, 20 points, 40,000 voxels"
case("hard_voxelize", f"{_TITLE}, deterministic", F32, capturable=False)(lambda: hard(True))
case("hard_voxelize", f"{_TITLE}, MMCV's kernel is not deterministic", F32, capturable=False)(lambda: hard(False))


@case("dynamic_voxelize", "120,000 points")
def _() -> Contest:
    cloud, size_and_range = points(), grid_tensors()

    def mmcv() -> Tensor:
        to = torch.zeros(POINTS, 3, dtype=torch.int32)
        gpu_rivals.mmcv().dynamic_voxelize_forward(cloud, *size_and_range, to, 3)
        return to

    return Contest(lambda: torch.ops.polyop.dynamic_voxelize(cloud, **GRID), [cloud], mmcv_rival(mmcv))


def scattered(reduce: str) -> Call:
    coors = torch.stack([torch.zeros(POINTS), torch.randint(400, (POINTS,)), torch.randint(400, (POINTS,))], 1).int()
    kept: list[Tensor] = []

    def forward(t: Tensor) -> Tensor:
        kept[:] = gpu_rivals.mmcv().dynamic_point_to_voxel_forward(t, coors, reduce)
        return kept[0]

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        if not kept:
            forward(t)
        to = torch.zeros_like(t)
        voxels, _, at, counts = kept
        gpu_rivals.mmcv().dynamic_point_to_voxel_backward(to, grad, t, voxels, at, counts, reduce)
        return [to]

    call = Call(lambda t: ops.dynamic_scatter(t, coors, reduce)[0], [torch.randn(POINTS, 64)], also_reads=[coors])
    return call.against_mmcv(forward, backward)


for _reduce in ("max", "mean"):
    differentiable("dynamic_scatter", f"120,000x64, {_reduce}", capturable=False)(lambda _, r=_reduce: scattered(r))


@differentiable("pillar_scatter", "12,000x64 to 496x432", F32, F16)
def _(dtype: torch.dtype) -> Call:
    positions = torch.randperm(496 * 432)[:12_000]
    coors = torch.stack([positions * 0, positions * 0, positions // 432, positions % 432], 1)

    def composed(t: Tensor) -> Tensor:
        return t.new_zeros(64, 496 * 432).index_copy(1, positions, t.t()).view(1, 64, 496, 432)

    return Call(
        lambda t: torch.ops.polyop.pillar_scatter(t, coors, None, dense_shape=[496, 432], batch_size=1),
        [torch.randn(12_000, 64).to(dtype)], {"torch": composed}, also_reads=[coors],
    )  # fmt: skip


def sparse_voxels() -> Tensor:
    """Returns 100,000 voxels around a surface, as a scanner sees them: a 3x3x3 window has 10 of them on average."""
    y, x = torch.meshgrid(torch.arange(224), torch.arange(224), indexing="ij")
    height = ((y * 0.05).sin() * 4 + (x * 0.03).cos() * 4 + 12).long()
    both = [torch.stack([y * 0, height + up, y, x], -1).flatten(0, 1) for up in (0, 1)]
    return torch.cat(both)[:100_000].int().contiguous()


def sparse(operator: str, channels: int, dtype: torch.dtype) -> Call:
    voxels, shape = sparse_voxels(), [32, 224, 224]
    features = torch.randn(len(voxels), channels).to(dtype)
    filters = (torch.randn(channels, 3, 3, 3, channels) * 0.05).to(dtype)
    _, pairs, counts, found = ops.get_indice_pairs(voxels, 1, shape, [3] * 3, subm=True)
    if operator == "indice_conv":
        table = [pairs, counts, found]
    else:
        _, *table, _ = ops.get_indice_pairs_implicit_gemm(voxels, 1, shape, [3] * 3, subm=True)
    # With subm=True, positions after the centre have the counts of their mirror images; the centre has every voxel.
    lengths = counts.tolist()
    lengths = [lengths[i] if i < 13 else len(voxels) if i == 13 else lengths[26 - i] for i in range(27)]
    rows = [(pairs[0, i, :n].long(), pairs[1, i, :n].long()) for i, n in enumerate(lengths)]
    rows[13] = (torch.arange(len(voxels)), torch.arange(len(voxels)))

    def gathered(features: Tensor, filters: Tensor) -> Tensor:
        """Gathers, multiplies and adds each position of the filter, as the first sparse convolutions did."""
        to = features.new_zeros(len(voxels), channels)
        for (source, target), part in zip(rows, filters.flatten(1, 3).unbind(1), strict=True):
            to = to.index_add(0, target, features[source] @ part.t())
        return to

    function = getattr(torch.ops.polyop, operator)
    rest = [] if operator == "indice_conv" else [None]
    return Call(
        lambda t, w: function(t, w, *table, *rest, is_subm=1), [features, filters], {"torch": gathered},
        also_reads=[t for t in table if t.dim()], flops=2.0 * sum(len(s) for s, _ in rows) * channels * channels,
    )  # fmt: skip


for _operator in ("implicit_gemm", "indice_conv"):
    _dtypes = (F32, F16) if _operator == "implicit_gemm" else (F32,)
    differentiable(_operator, "100,000 voxels, 3x3x3, 64 channels", *_dtypes, capturable=False)(
        lambda dtype, name=_operator: sparse(name, 64, dtype)
    )


def tables(operator: str) -> Contest:
    voxels = sparse_voxels()
    run = getattr(ops, operator)
    return Contest(lambda: run(voxels, 1, [32, 224, 224], [3] * 3, subm=True), [voxels])


for _operator in ("get_indice_pairs", "get_indice_pairs_implicit_gemm"):
    case(_operator, "100,000 voxels, 3x3x3, submanifold", F32, capturable=False)(lambda name=_operator: tables(name))


@differentiable("bev_pool", "150,000 points, 80 channels to 128x128")
def _(dtype: torch.dtype) -> Call:
    cells = torch.randint(128 * 128, (150_000,)).sort()[0]
    lengths = torch.unique_consecutive(cells, return_counts=True)[1]
    ranks = [cells.int(), (lengths.cumsum(0) - lengths).int(), lengths.int()]
    depth, feat = torch.rand(6, 59, 16, 44), torch.randn(6, 16, 44, 80)
    at_depth, at_feat = torch.randint(depth.numel(), (150_000,)).int(), torch.randint(6 * 16 * 44, (150_000,)).int()

    def composed(depth: Tensor, feat: Tensor) -> Tensor:
        rows = depth.flatten()[at_depth.long(), None] * feat.flatten(0, 2)[at_feat.long()]
        return feat.new_zeros(128 * 128, 80).index_add(0, cells, rows).view(-1)

    def function(depth: Tensor, feat: Tensor) -> Tensor:
        to = torch.ops.polyop.bev_pool(depth, feat, at_depth, at_feat, *ranks, out_height=128, out_width=128)
        return to.reshape(-1)

    return Call(function, [depth, feat], {"torch": composed}, also_reads=[at_depth, at_feat, *ranks])


@differentiable("segment_csr", "60,000x64, segments of 10, sum")
def _(dtype: torch.dtype) -> Call:
    ends = torch.arange(0, 60_001, 10)
    return Call(
        lambda t: ops.segment_csr(t, ends, "sum"), [torch.randn(60_000, 64)],
        {"torch": lambda t: torch.segment_reduce(t, "sum", offsets=ends)}, also_reads=[ends],
    )  # fmt: skip


@case("scatter_reduce", "60,000x64 to 6,000 rows, add")
def _() -> Contest:
    data, updates, rows = torch.zeros(6000, 64), torch.randn(60_000, 64), torch.randint(6000, (60_000,))
    at = rows[:, None].expand(-1, 64).contiguous()
    return Contest(
        lambda: torch.ops.polyop.scatter_reduce(data, at, updates, axis=0, reduction="add"), [data, at, updates],
        {"torch": lambda: torch.scatter_reduce(data, 0, at, updates, "sum")},
    )  # fmt: skip
