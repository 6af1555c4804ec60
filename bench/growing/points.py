# SPDX-License-Identifier: Apache-2.0
"""Point clouds and voxels."""

from __future__ import annotations

import torch
from torch import Tensor

from growing.boxes import boxes3d
from growing.call import MILLION, Call, Growing, call, integers, normal, uniform

# A street: the ground grows with the number of points.
CELL = 0.2


def street(n: int, dims: int = 3) -> Tensor:
    side = 0.1 * n**0.5
    return uniform(n, dims) * torch.tensor([side, side, 3.0, 1.0][:dims])


def area(n: int) -> dict[str, list[float]]:
    side = 0.1 * n**0.5
    return {"voxel_size": [CELL, CELL, 4.0], "point_cloud_range": [0.0, 0.0, -0.5, side, side, 3.5]}


def cells(n: int) -> Tensor:
    side = max(1, int(0.1 * n**0.5 / CELL))
    return torch.cat([torch.zeros(n, 1, dtype=torch.int32), integers(side, n, 2)], 1)


def ends(n: int) -> Tensor:
    return torch.tensor([n], dtype=torch.int32)


def batch(points: Tensor) -> Tensor:
    return points[None].contiguous()


def quarter(n: int) -> Tensor:
    """Returns every fourth point."""
    return street(n)[::4].contiguous()


def voxels(n: int) -> tuple[Tensor, list[int]]:
    """Returns distinct voxels of a slab in which one of ten is filled."""
    side = max(2, round((n * 2.5) ** 0.5))
    at = torch.randperm(side * side * 4, generator=torch.Generator().manual_seed(5))[:n]
    return torch.stack([at * 0, at % 4, at // 4 // side, at // 4 % side], 1).int(), [4, side, side]


def pairs(operator: str, n: int) -> Call:
    indices, shape = voxels(n)
    return call(operator, indices, batch_size=1, spatial_shape=shape, ksize=[3, 3, 3], stride=[1, 1, 1], subm=1)


def convolution(operator: str, n: int) -> Call:
    features, filters = normal(n, 16), normal(16, 3, 3, 3, 16)
    if operator == "indice_conv":
        _, lists, number, active = pairs("get_indice_pairs", n)()
        return call(operator, features, filters, lists, number, active, is_subm=1)
    _, table, mask, order, _ = pairs("get_indice_pairs_implicit_gemm", n)()
    return call(operator, features, filters, table, mask, order, None, is_subm=1)


def runs(n: int) -> tuple[Tensor, Tensor, Tensor, int]:
    """Returns four points per cell of a square view: their cells, and each cell's start and number of points."""
    side = max(1, round((n / 4) ** 0.5))
    cell = integers(side * side, n).sort().values
    _, count = cell.unique_consecutive(return_counts=True)
    return cell, (count.cumsum(0) - count).int(), count.int(), side


def lifted(n: int, layers: int = 1) -> Call:
    """Into one layer, or into several."""
    cell, starts, lengths, side = runs(n)
    pixels = max(1, n // 59)
    depth = torch.arange(n, dtype=torch.int32) % (59 * pixels)
    several = {} if layers == 1 else {"output_z": layers}
    return call("bev_pool" if layers == 1 else "bev_pool_volume", uniform(1, 59, 1, pixels), normal(1, 1, pixels, 16),
                depth, depth % pixels, cell * layers, starts, lengths,
                out_height=side, out_width=side, **several)  # fmt: skip


def summed(n: int) -> Call:
    cell, starts, lengths, side = runs(n)
    position = torch.stack([cell // side, cell % side, cell * 0, cell * 0], 1)
    return call("quick_cumsum", normal(n, 16), position, lengths, starts, batch_size=1, dimension=1, height=side,
                width=side)  # fmt: skip


def pillars(n: int) -> Call:
    side = max(1, round((4 * n) ** 0.5))
    cell = torch.randperm(side * side, generator=torch.Generator().manual_seed(6))[:n].int()
    coords = torch.stack([cell * 0, cell * 0, cell // side, cell % side], 1)
    return call("pillar_scatter", normal(n, 16), coords, None, dense_shape=[side, side])


def generated(n: int) -> Call:
    return call("voxel_generator", street(n, 4)[None], ends(n), max_num_points_per_voxel=8, max_voxels=max(1, n // 4),
                voxel_feature_num=10, **area(n))  # fmt: skip


def segments(n: int) -> Call:
    return call("segment_csr", normal(n, 16), torch.arange(0, n + 4, 4).clamp(max=n), reduce="sum")


def neighbours(n: int) -> Tensor:
    return integers(n, 1, n // 4, 16)


def scored(n: int) -> Call:
    """Two weight matrices, 16 channels, 16 neighbours."""
    return call(
        "assign_score_withk", uniform(1, n // 4, 16, 2), normal(1, n, 2, 16), normal(1, n, 2, 16), neighbours(n)
    )


POINTS = 10 * MILLION

CASES = [
    Growing("voxel_grid", "points", 1000, POINTS, lambda n: call(
        "voxel_grid", street(n), torch.full((3,), CELL), torch.zeros(3), torch.full((3,), 0.1 * n**0.5))),
    Growing("dynamic_voxelize", "points", 1000, POINTS, lambda n: call("dynamic_voxelize", street(n, 4), **area(n))),
    Growing("hard_voxelize", "points", 1000, POINTS, lambda n: call(
        "hard_voxelize", street(n, 4), max_num_points=8, max_voxels=max(1, n // 4), **area(n))),
    Growing("voxel_generator", "points", 1000, POINTS, generated),
    Growing("dynamic_scatter", "points", 1000, POINTS, lambda n: call("dynamic_scatter", normal(n, 16), cells(n))),
    Growing("segment_csr", "rows", 1000, POINTS, segments),
    Growing("custom_unique", "numbers", 1000, POINTS, lambda n: call("custom_unique", integers(n, n))),
    Growing("argsort", "numbers", 1000, POINTS, lambda n: call("argsort", integers(n, n))),
    Growing("knn", "points, a quarter asks", 1000, POINTS, lambda n: call("knn", batch(street(n)), batch(quarter(n)), k=16)),
    Growing("knn_query", "points, a quarter asks", 1000, POINTS, lambda n: call(
        "knn_query", torch.tensor(16), street(n), ends(n), quarter(n), ends(len(quarter(n))))),
    Growing("ball_query", "points, a quarter asks", 1000, POINTS, lambda n: call(
        "ball_query", batch(street(n)), batch(quarter(n)), max_radius=0.3, sample_num=16)),
    Growing("stacked_ball_query", "points, a quarter asks", 1000, POINTS, lambda n: call(
        "stacked_ball_query", street(n), ends(n), quarter(n), ends(len(quarter(n))), max_radius=0.3, sample_num=16)),
    Growing("grid_ball_query", "points, a quarter asks", 1000, POINTS, lambda n: call(
        "grid_ball_query", batch(street(n)), batch(quarter(n)), radius=0.3, nsample=16)),
    Growing("chamfer_distance", "points of both clouds", 1000, POINTS, lambda n: call(
        "chamfer_distance", batch(street(n)), batch(street(n).flip(0) + 0.01))),
    Growing("three_nn", "points, a quarter are sources", 1000, POINTS, lambda n: call(
        "three_nn", batch(street(n)), batch(quarter(n)))),
    Growing("three_interpolate", "points", 1000, POINTS, lambda n: call(
        "three_interpolate", normal(1, 16, n // 4), integers(n // 4, 1, n, 3), uniform(1, n, 3))),
    Growing("group_points", "points, groups of 16 of a quarter", 1000, POINTS, lambda n: call(
        "group_points", normal(1, 16, n), neighbours(n))),
    Growing("assign_score_withk", "points, 16 neighbours of a quarter", 1000, POINTS, scored),
    Growing("gather_points", "points", 1000, POINTS, lambda n: call("gather_points", normal(1, 16, n), integers(n, 1, n))),
    Growing("furthest_point_sampling", "points, a quarter is chosen", 1000, POINTS, lambda n: call(
        "furthest_point_sampling", batch(street(n)), num_points=n // 4)),
    Growing("furthest_point_sampling", "points, 1,000 are chosen", 1000, POINTS, lambda n: call(
        "furthest_point_sampling", batch(street(n)), num_points=1000)),
    Growing("furthest_point_sampling_with_dist", "points of each side, a quarter is chosen", 100, 20_000, lambda n: call(
        "furthest_point_sampling_with_dist", torch.cdist(street(n), street(n))[None], num_points=n // 4)),
    Growing("points_in_boxes_all", "points, 64 boxes", 1000, POINTS, lambda n: call(
        "points_in_boxes_all", batch(street(n)), batch(boxes3d(64)))),
    Growing("points_in_boxes_part", "points, 64 boxes", 1000, POINTS, lambda n: call(
        "points_in_boxes_part", batch(street(n)), batch(boxes3d(64)))),
    Growing("points_in_boxes_part", "points and as many boxes as a hundredth", 1000, POINTS, lambda n: call(
        "points_in_boxes_part", batch(street(n)), batch(boxes3d(n // 100) * torch.tensor([0.25, 0.25, 1, 1, 1, 1, 1])))),
    Growing("roiaware_pool3d", "points, 64 rois", 1000, POINTS, lambda n: call(
        "roiaware_pool3d", boxes3d(64), street(n), normal(n, 4), out_size=[7, 7, 7])),
    Growing("roipoint_pool3d", "points, 64 boxes", 1000, POINTS, lambda n: call(
        "roipoint_pool3d", batch(street(n)), normal(1, n, 4), batch(boxes3d(64)))),
    Growing("get_indice_pairs", "voxels", 1000, MILLION, lambda n: pairs("get_indice_pairs", n)),
    Growing("get_indice_pairs_implicit_gemm", "voxels", 1000, MILLION, lambda n: pairs("get_indice_pairs_implicit_gemm", n)),
    Growing("indice_conv", "voxels", 1000, MILLION, lambda n: convolution("indice_conv", n)),
    Growing("implicit_gemm", "voxels", 1000, MILLION, lambda n: convolution("implicit_gemm", n)),
    Growing("bev_pool", "points", 1000, POINTS, lifted),
    Growing("bev_pool_volume", "points, 4 layers", 1000, POINTS, lambda n: lifted(n, layers=4)),
    Growing("quick_cumsum", "points", 1000, POINTS, summed),
    Growing("pillar_scatter", "pillars", 1000, MILLION, pillars),
]  # fmt: skip
