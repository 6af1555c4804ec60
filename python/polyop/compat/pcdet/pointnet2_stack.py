# SPDX-License-Identifier: Apache-2.0
"""`pcdet.ops.pointnet2.pointnet2_stack.pointnet2_stack_cuda`: concatenated clouds of different sizes, and local vectors
(PV-RCNN++). The arguments that repeat extents of tensors have no effect."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from polyop import functional
from polyop.compat.mmcv_ext import points as _points
from polyop.compat.pcdet.pointnet2_batch import farthest_point_sampling_wrapper

__all__ = [
    "ball_query_wrapper", "farthest_point_sampling_wrapper", "group_points_grad_wrapper", "group_points_wrapper",
    "query_stacked_local_neighbor_idxs_wrapper_stack", "query_three_nn_by_stacked_local_idxs_wrapper_stack",
    "stack_farthest_point_sampling_wrapper", "three_interpolate_grad_wrapper", "three_interpolate_wrapper",
    "three_nn_wrapper", "vector_pool_grad_wrapper", "vector_pool_wrapper", "voxel_query_wrapper",
]  # fmt: skip

_MAX_PAIRS = 1 << 22  # that are compared at once
_MAX_NEIGHBOURS = 1000  # of a point, as in OpenPCDet


def _clouds(function: str, *given: tuple[str, Tensor, Tensor]) -> Iterator[tuple[slice, ...]]:
    """Yields for each cloud the rows of each of the concatenated tensors, given with their name and counts."""
    sizes = []
    for name, tensor, counts in given:
        sizes.append(counts.tolist())
        if sum(sizes[-1]) != len(tensor) or min(sizes[-1], default=0) < 0 or len(sizes[-1]) != len(sizes[0]):
            raise ValueError(
                f"{function}: {name}: expected {len(tensor)} points in {len(sizes[0])} clouds, got counts {sizes[-1]}"
            )
    starts = [0] * len(given)
    for of_cloud in zip(*sizes, strict=True):
        yield tuple(slice(start, start + size) for start, size in zip(starts, of_cloud, strict=True))
        starts = [start + size for start, size in zip(starts, of_cloud, strict=True)]


def _check_indices(function: str, idx: Tensor, rows: int) -> None:
    if idx.numel() > 0 and not (int(idx.min()) >= 0 and int(idx.max()) < rows):
        raise ValueError(f"{function}: idx: expected indices in [0, {rows}), got {int(idx.min())} to {int(idx.max())}")


# ---- neighbours ------------------------------------------------------------------------------------


def ball_query_wrapper(
    b: int,
    m: int,
    radius: float,
    nsample: int,
    new_xyz: Tensor,
    new_xyz_batch_cnt: Tensor,
    xyz: Tensor,
    xyz_batch_cnt: Tensor,
    idx: Tensor,
) -> int:
    """idx [M, nsample], relative to the cloud: its first points nearer than `radius`. Without one, idx[:, 0] is -1."""
    del b, m
    _points.stack_ball_query_forward(new_xyz, new_xyz_batch_cnt, xyz, xyz_batch_cnt, idx, radius, nsample)
    return 1


def voxel_query_wrapper(
    m: int,
    r1: int,
    r2: int,
    r3: int,
    nsample: int,
    radius: float,
    z_range: int,
    y_range: int,
    x_range: int,
    new_xyz: Tensor,
    xyz: Tensor,
    new_coords: Tensor,
    point_indices: Tensor,
    idx: Tensor,
) -> int:
    """idx [M, nsample]: the points within `radius` in the voxels around new_coords [M, 4] (cloud, z, y, x), by voxel;
    the first one repeats. point_indices [B, R1, R2, R3] has the point of each voxel, or -1. Without a point, the first
    index is -1."""
    del m, r1, r2, r3
    ranges = [torch.arange(-r, r + 1, device=xyz.device) for r in (z_range, y_range, x_range)]
    around = torch.stack(torch.meshgrid(*ranges, indexing="ij"), -1).view(-1, 3)
    size = torch.tensor(point_indices.shape[1:], device=xyz.device)
    for rows in torch.arange(len(new_coords), device=xyz.device).split(max(1, _MAX_PAIRS // len(around))):
        coords = new_coords[rows].long()
        cell = coords[:, None, 1:] + around
        inside = ((cell >= 0) & (cell < size)).all(-1)
        cell = torch.where(inside[..., None], cell, 0)
        point = torch.where(inside, point_indices[coords[:, :1], cell[..., 0], cell[..., 1], cell[..., 2]].long(), -1)
        distance = (xyz[point.clamp(min=0)] - new_xyz[rows][:, None]).square().sum(-1)
        found = (point >= 0) & (distance <= radius * radius)
        order = (~found).to(torch.int8).sort(dim=1, stable=True).indices[:, :nsample]
        chosen, valid = point.gather(1, order), found.gather(1, order)
        chosen = torch.where(valid, chosen, chosen[:, :1])
        if chosen.shape[1] < nsample:
            chosen = torch.cat([chosen, chosen[:, :1].expand(-1, nsample - chosen.shape[1])], 1)
        empty = ~valid[:, :1]
        first = torch.where(empty, -1, chosen[:, :1]).to(idx.dtype)
        rest = torch.where(empty, idx[rows, 1:], chosen[:, 1:].to(idx.dtype))
        idx[rows] = torch.cat([first, rest], 1)
    return 1


def three_nn_wrapper(
    unknown: Tensor, unknown_batch_cnt: Tensor, known: Tensor, known_batch_cnt: Tensor, dist2: Tensor, idx: Tensor
) -> None:
    """The squared distances and indices [N, 3] of the three points of the same cloud of `known`."""
    clouds = _clouds(
        "three_nn_wrapper",
        ("unknown_batch_cnt", unknown, unknown_batch_cnt),
        ("known_batch_cnt", known, known_batch_cnt),
    )
    for rows, source in clouds:
        if source.start == source.stop:
            dist2[rows], idx[rows] = torch.inf, source.start
        elif rows.start < rows.stop:
            distance, nearest = functional.three_nn(unknown[None, rows].contiguous(), known[None, source].contiguous())
            dist2[rows] = distance[0].square()
            idx[rows] = nearest[0] + source.start


def three_interpolate_wrapper(features: Tensor, idx: Tensor, weight: Tensor, out: Tensor) -> None:
    """features [M, C], idx and weight [N, 3] -> out [N, C]."""
    _check_indices("three_interpolate_wrapper", idx, len(features))
    result = functional.three_interpolate(features.detach().T[None].contiguous(), idx[None], weight.detach()[None])
    out.copy_(result[0].T)


def three_interpolate_grad_wrapper(grad_out: Tensor, idx: Tensor, weight: Tensor, grad_features: Tensor) -> None:
    """Adds the gradient of the features to grad_features [M, C]."""
    _check_indices("three_interpolate_grad_wrapper", idx, len(grad_features))
    grad_features.index_add_(0, idx.flatten().long(), (grad_out[:, None] * weight[..., None]).flatten(0, 1))


def stack_farthest_point_sampling_wrapper(
    points: Tensor, temp: Tensor, xyz_batch_cnt: Tensor, idx: Tensor, num_sampled_points: Tensor
) -> int:
    """idx [sum of num_sampled_points]: rows of `points`, sampled from each cloud. `temp` is not used."""
    del temp
    clouds = _clouds(
        "stack_farthest_point_sampling_wrapper",
        ("xyz_batch_cnt", points, xyz_batch_cnt),
        ("num_sampled_points", idx, num_sampled_points),
    )
    for rows, to in clouds:
        if to.start < to.stop:
            count = to.stop - to.start
            idx[to] = functional.furthest_point_sample(points[None, rows].contiguous(), count)[0] + rows.start
    return 1


def group_points_wrapper(
    b: int,
    m: int,
    c: int,
    nsample: int,
    features: Tensor,
    features_batch_cnt: Tensor,
    idx: Tensor,
    idx_batch_cnt: Tensor,
    out: Tensor,
) -> int:
    """features [N, C], idx [M, nsample] relative to the cloud -> out [M, C, nsample]; 0 for invalid indices."""
    _points.stack_group_points_forward(features, features_batch_cnt, idx, idx_batch_cnt, out, b, c, m, nsample)
    return 1


def group_points_grad_wrapper(
    b: int,
    m: int,
    c: int,
    n: int,
    nsample: int,
    grad_out: Tensor,
    idx: Tensor,
    idx_batch_cnt: Tensor,
    features_batch_cnt: Tensor,
    grad_features: Tensor,
) -> int:
    """Adds the gradient of the features to grad_features [N, C]."""
    _points.stack_group_points_backward(
        grad_out, idx, idx_batch_cnt, features_batch_cnt, grad_features, b, c, m, n, nsample
    )
    return 1


# ---- local vectors ---------------------------------------------------------------------------------


def _neighbours(
    function: str,
    support_xyz: Tensor,
    xyz_batch_cnt: Tensor,
    new_xyz: Tensor,
    new_xyz_batch_cnt: Tensor,
    distance: float,
    neighbor_type: int,
) -> tuple[Tensor, Tensor]:
    """Returns the pairs (row of new_xyz, row of support_xyz), in this order, within a ball (neighbor_type 1) or a cube
    around each of new_xyz, of the same cloud."""
    clouds = _clouds(
        function, ("xyz_batch_cnt", support_xyz, xyz_batch_cnt), ("new_xyz_batch_cnt", new_xyz, new_xyz_batch_cnt)
    )
    found = [torch.empty(0, 2, dtype=torch.int64, device=new_xyz.device)]
    for source, queries in clouds:
        points = support_xyz[source]
        rows = torch.arange(queries.start, queries.stop, device=new_xyz.device)
        for part in rows.split(max(1, _MAX_PAIRS // max(1, len(points)))):
            offset = points[None] - new_xyz[part][:, None]
            if neighbor_type == 1:
                near = offset.square().sum(-1) <= distance * distance
            else:
                near = (offset.abs() <= distance).all(-1)
            pairs = near.nonzero()
            found.append(torch.stack([part[pairs[:, 0]], pairs[:, 1] + source.start], 1))
    return tuple(torch.cat(found).unbind(1))


def _number_in_run(keys: Tensor) -> Tensor:
    """Returns the index of each element among equal ones; the keys are sorted."""
    keys = keys.contiguous()
    return torch.arange(len(keys), device=keys.device) - torch.searchsorted(keys, keys)


def query_stacked_local_neighbor_idxs_wrapper_stack(
    support_xyz: Tensor,
    xyz_batch_cnt: Tensor,
    new_xyz: Tensor,
    new_xyz_batch_cnt: Tensor,
    stack_neighbor_idxs: Tensor,
    start_len: Tensor,
    cumsum: Tensor,
    avg_length_of_neighbor_idxs: int,
    max_neighbour_distance: float,
    nsample: int,
    neighbor_type: int,
) -> int:
    """Lists the first points (1,000 at most, or nsample > 0) within a distance of each of new_xyz, one after the other;
    start_len [M, 2] has the first position and the number of each, cumsum [1] the number of all, which may exceed what
    is listed: avg_length_of_neighbor_idxs * M."""
    query, point = _neighbours(
        "query_stacked_local_neighbor_idxs_wrapper_stack", support_xyz, xyz_batch_cnt, new_xyz, new_xyz_batch_cnt,
        max_neighbour_distance, neighbor_type,
    )  # fmt: skip
    limit = min(nsample, _MAX_NEIGHBOURS) if nsample > 0 else _MAX_NEIGHBOURS
    kept = _number_in_run(query) < limit
    query, point = query[kept], point[kept]
    counts = torch.bincount(query, minlength=len(new_xyz))
    start_len.copy_(torch.stack([counts.cumsum(0) - counts, counts], 1) + torch.stack([cumsum[0], 0 * cumsum[0]]))
    room = min(avg_length_of_neighbor_idxs * len(new_xyz), len(stack_neighbor_idxs)) - int(cumsum[0])
    listed = point[: max(room, 0)].to(stack_neighbor_idxs.dtype)
    stack_neighbor_idxs[int(cumsum[0]) : int(cumsum[0]) + len(listed)] = listed
    cumsum += len(point)
    return 0


def query_three_nn_by_stacked_local_idxs_wrapper_stack(
    support_xyz: Tensor,
    new_xyz: Tensor,
    new_xyz_grid_centers: Tensor,
    new_xyz_grid_idxs: Tensor,
    new_xyz_grid_dist2: Tensor,
    stack_neighbor_idxs: Tensor,
    start_len: Tensor,
    m: int,
    num_total_grids: int,
) -> int:
    """The three listed points nearest to each centre [M, num_total_grids, 3], and their squared distances. The nearest
    one repeats; without any, indices are -1 and distances infinite."""
    del new_xyz
    _check_indices("query_three_nn_by_stacked_local_idxs_wrapper_stack", stack_neighbor_idxs, len(support_xyz))
    start, length = start_len.long().unbind(1)
    longest = max(int(length.max()) if m > 0 else 0, 1)
    if m > 0 and int((start + length).max()) > len(stack_neighbor_idxs):
        raise ValueError(
            "query_three_nn_by_stacked_local_idxs_wrapper_stack: start_len: expected positions in "
            f"[0, {len(stack_neighbor_idxs)}], got {int((start + length).max())}"
        )
    listed = torch.cat([stack_neighbor_idxs.long(), stack_neighbor_idxs.new_zeros(longest).long()])
    column = torch.arange(longest, device=start.device)
    for rows in torch.arange(m, device=start.device).split(max(1, _MAX_PAIRS // (longest * max(1, num_total_grids)))):
        point = listed[start[rows][:, None] + column]
        missing = column >= length[rows][:, None]
        offset = new_xyz_grid_centers[rows][:, :, None] - support_xyz[point][:, None]
        distance = offset.square().sum(-1).masked_fill(missing[:, None], torch.inf)
        if longest < 3:
            distance = torch.nn.functional.pad(distance, (0, 3 - longest), value=torch.inf)
            point = torch.nn.functional.pad(point, (0, 3 - longest))
        order = distance.sort(dim=2, stable=True).indices[..., :3]
        nearest = distance.gather(2, order)
        index = point[:, None].expand(-1, num_total_grids, -1).gather(2, order)
        index = torch.where(nearest.isinf(), index[..., :1], index)
        nearest = torch.where(nearest.isinf(), nearest[..., :1], nearest)
        new_xyz_grid_idxs[rows] = torch.where(nearest.isinf(), -1, index).to(new_xyz_grid_idxs.dtype)
        new_xyz_grid_dist2[rows] = nearest
    return 0


def vector_pool_wrapper(
    support_xyz: Tensor,
    xyz_batch_cnt: Tensor,
    support_features: Tensor,
    new_xyz: Tensor,
    new_xyz_batch_cnt: Tensor,
    new_features: Tensor,
    new_local_xyz: Tensor,
    point_cnt_of_grid: Tensor,
    grouped_idxs: Tensor,
    num_grid_x: int,
    num_grid_y: int,
    num_grid_z: int,
    max_neighbour_distance: float,
    use_xyz: int,
    num_max_sum_points: int,
    nsample: int,
    neighbor_type: int,
    pooling_type: int,
) -> int:
    """Sums the features of the points in each cell of a grid around each of new_xyz (pooling_type 0), or takes those of
    the first point (1). Returns the number of these points; the first num_max_sum_points are listed in grouped_idxs as
    (point, row of new_xyz, cell). nsample > 0 limits the points of a row."""
    query, point = _neighbours(
        "vector_pool_wrapper", support_xyz, xyz_batch_cnt, new_xyz, new_xyz_batch_cnt, max_neighbour_distance,
        neighbor_type,
    )  # fmt: skip
    grids = torch.tensor([num_grid_x, num_grid_y, num_grid_z], device=new_xyz.device)
    cells = point_cnt_of_grid.shape[1]
    local = support_xyz[point] - new_xyz[query]
    axis = ((local + max_neighbour_distance) / (max_neighbour_distance * 2 / grids)).floor().long()
    cell = ((axis[:, 0] * num_grid_y + axis[:, 1]) * num_grid_z + axis[:, 2]).clamp(0, cells - 1)
    if pooling_type == 1:
        key, order = (query * cells + cell).sort(stable=True)
        kept = order[_number_in_run(key) == 0].sort().values
        query, point, cell, local = query[kept], point[kept], cell[kept], local[kept]
    if nsample > 0:
        kept = _number_in_run(query) < nsample
        query, point, cell, local = query[kept], point[kept], cell[kept], local[kept]
    of_cell = new_features.shape[1] // cells
    if support_features.shape[1] % of_cell != 0:
        raise ValueError(
            f"vector_pool_wrapper: support_features: expected a multiple of {of_cell} channels, got "
            f"{support_features.shape[1]}"
        )
    features = support_features.unflatten(1, (-1, of_cell))
    features = features.sum(1) if pooling_type == 0 else features[:, -1]
    key = query * cells + cell
    new_features.view(-1, of_cell).index_add_(0, key, features[point])
    point_cnt_of_grid.view(-1).index_add_(0, key, torch.ones_like(key, dtype=point_cnt_of_grid.dtype))
    if use_xyz:
        new_local_xyz.view(-1, 3).index_add_(0, key, local)
    listed = torch.stack([point, query, cell], 1)[: min(num_max_sum_points, len(grouped_idxs))]
    grouped_idxs[: len(listed)] = listed.to(grouped_idxs.dtype)
    return len(key)


def vector_pool_grad_wrapper(
    grad_new_features: Tensor, point_cnt_of_grid: Tensor, grouped_idxs: Tensor, grad_support_features: Tensor
) -> int:
    """Adds the gradient of the features to grad_support_features [N, C]."""
    point, query, cell = grouped_idxs.long().unbind(1)
    _check_indices("vector_pool_grad_wrapper", point, len(grad_support_features))
    cells = point_cnt_of_grid.shape[1]
    key = query * cells + cell
    grad = grad_new_features.reshape(len(point_cnt_of_grid) * cells, -1)[key]
    grad = grad / point_cnt_of_grid.view(-1)[key].clamp(min=1)[:, None]
    repeats = grad_support_features.shape[1] // max(grad.shape[1], 1)
    grad_support_features.index_add_(0, point, grad.repeat(1, repeats))
    return 1
