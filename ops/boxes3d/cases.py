# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import Contest, mmcv_rival
from inputs import clouds, uniform
from torch import Tensor


def cars(count: int, extent: float, seed: int = 30) -> np.ndarray:
    """Returns cars (x, y, z, dx, dy, dz, heading) at random positions in a square."""
    rng = np.random.default_rng(seed)
    position = rng.uniform(0, 1, (count, 3)) * [extent, extent, 2]
    size = rng.uniform(0.8, 1.2, (count, 3)) * [3.9, 1.6, 1.56]
    return np.concatenate([position, size, rng.uniform(-np.pi, np.pi, (count, 1))], 1).astype(np.float32)


def areas_shared(box: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Returns the intersection area of a box (x, y, w, h, angle) with each of others [K, 5], in torch: corners inside
    the other box and crossings of sides, sorted by angle.
    """

    def corners(boxes: torch.Tensor) -> torch.Tensor:
        c, s = boxes[:, 4].cos(), boxes[:, 4].sin()
        turn = torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)
        unit = boxes.new_tensor([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
        return boxes[:, None, :2] + (unit * boxes[:, None, 2:4]) @ turn

    def inside(points: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
        at = points - boxes[:, None, :2]
        c, s = boxes[:, None, 4].cos(), boxes[:, None, 4].sin()
        along, across = at[..., 0] * c + at[..., 1] * s, at[..., 1] * c - at[..., 0] * s
        return (along.abs() <= boxes[:, None, 2] / 2) & (across.abs() <= boxes[:, None, 3] / 2)

    p, q = corners(box[None]).expand(len(others), -1, -1), corners(others)
    u, v = (p.roll(-1, 1) - p)[:, :, None], (q.roll(-1, 1) - q)[:, None]
    apart = q[:, None] - p[:, :, None]
    cross = u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]
    t = (apart[..., 0] * v[..., 1] - apart[..., 1] * v[..., 0]) / cross
    w = (apart[..., 0] * u[..., 1] - apart[..., 1] * u[..., 0]) / cross
    meets = (t >= 0) & (t <= 1) & (w >= 0) & (w <= 1)
    crossings = p[:, :, None] + torch.where(meets, t, 0)[..., None] * u
    points = torch.cat([p, q, crossings.flatten(1, 2)], 1)
    some = torch.cat([inside(p, others), inside(q, box[None]), meets.flatten(1)], 1)
    number = some.sum(1)
    middle = torch.where(some[..., None], points, 0).sum(1) / number.clamp(min=1)[:, None]
    points = torch.where(some[..., None], points - middle[:, None], 0)
    angle = torch.where(some, torch.atan2(points[..., 1], points[..., 0]), torch.inf)
    order = angle.argsort(1)
    points = points.gather(1, order[..., None].expand_as(points))
    points = torch.where((torch.arange(24) < number[:, None])[..., None], points, points[:, :1])
    after = points.roll(-1, 1)
    return (points[..., 0] * after[..., 1] - points[..., 1] * after[..., 0]).sum(1).abs() / 2


def inside(points: torch.Tensor, boxes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns whether boxes [M, 7] contain points [N, 3], and the points' coordinates along the boxes' axes:

    [M, N], [M, N, 3].
    """
    at = points - boxes[:, None, :3]
    c, s = boxes[:, None, 6].cos(), boxes[:, None, 6].sin()
    half = boxes[:, None, 3:6] / 2
    position = torch.stack(
        [at[..., 0] * c + at[..., 1] * s, at[..., 1] * c - at[..., 0] * s, at[..., 2] - half[..., 2]], -1
    )
    return (position.abs() < half).all(-1), position + half


def points_near(boxes: np.ndarray, count: int) -> np.ndarray:
    """Returns points, half of them around boxes."""
    rng = np.random.default_rng(37)
    near = boxes[rng.integers(0, len(boxes), count // 2), :3] + rng.normal(0, 1, (count // 2, 3))
    return rng.permutation(np.concatenate([near, rng.uniform(0, 70, (count - count // 2, 3))])).astype(np.float32)


def in_boxes(every: bool) -> Contest:
    points = clouds(20_000)
    boxes = torch.rand(4, 64, 7) * torch.tensor([40.0, 40, 1, 3, 3, 3, 3]) + torch.tensor([0, 0, 0, 1.0, 1, 1, 0])
    name = f"points_in_boxes_{'all' if every else 'part'}"

    def mmcv() -> Tensor:
        shape = (4, 20_000, 64) if every else (4, 20_000)
        to = torch.full(shape, 0 if every else -1, dtype=torch.int32)
        getattr(projects.mmcv(), f"{name}_forward")(boxes, points, to)
        return to

    return Contest(lambda: getattr(torch.ops.polyop, name)(points, boxes), mmcv_rival(mmcv), reads=[points, boxes])


def cars_over(n: int) -> Tensor:
    """Returns cars on a ground that grows with their number."""
    position = uniform(n, 3) * torch.tensor([4 * n**0.5, 4 * n**0.5, 2])
    size = uniform(n, 3, low=0.8, high=1.2) * torch.tensor([3.9, 1.6, 1.56])
    return torch.cat([position, size, uniform(n, 1, low=-3, high=3)], 1)
