# SPDX-License-Identifier: Apache-2.0
"""Points: sampling, neighbours, groups, and boxes that contain them."""

from __future__ import annotations

import gpu_rivals
import torch
from torch import Tensor

import polyop.functional as ops
from gpu_cases.cases import Call, Contest, case, differentiable, mmcv_rival

CLOUDS = 4


def cloud(count: int, clouds: int = CLOUDS) -> Tensor:
    return torch.rand(clouds, count, 3) * torch.tensor([40.0, 40, 3])


@case("furthest_point_sampling", "4x16,384, 2,048 chosen")
def _() -> Contest:
    xyz = cloud(16_384)

    def mmcv() -> Tensor:
        to, distances = torch.empty(CLOUDS, 2048, dtype=torch.int32), torch.full((CLOUDS, 16_384), 1e10)
        gpu_rivals.mmcv().furthest_point_sampling_forward(xyz, distances, to, CLOUDS, 16_384, 2048)
        return to

    return Contest(lambda: ops.furthest_point_sample(xyz, 2048), [xyz], mmcv_rival(mmcv))


@case("ball_query", "4x16,384, 2,048 centres, 32 within 1.2")
def _() -> Contest:
    xyz = cloud(16_384)
    centres = xyz[:, ::8].contiguous()

    def mmcv() -> Tensor:
        to = torch.zeros(CLOUDS, 2048, 32, dtype=torch.int32)
        gpu_rivals.mmcv().ball_query_forward(centres, xyz, to, CLOUDS, 16_384, 2048, 0.0, 1.2, 32)
        return to

    return Contest(lambda: ops.ball_query(0.0, 1.2, 32, xyz, centres), [xyz, centres], mmcv_rival(mmcv))


def nearest(points: int, centres: int, k: int) -> Contest:
    xyz = cloud(points)
    of = xyz[:, :centres].contiguous()

    def mmcv() -> Tensor:
        to, distances = torch.zeros(CLOUDS, centres, k, dtype=torch.int32), torch.zeros(CLOUDS, centres, k)
        gpu_rivals.mmcv().knn_forward(xyz, of, to, distances, CLOUDS, points, centres, k)
        return to.transpose(2, 1).contiguous()

    rivals = mmcv_rival(mmcv)
    rivals["torch"] = lambda: torch.cdist(of, xyz).topk(k, largest=False)[1].int().transpose(2, 1)
    return Contest(lambda: ops.knn(k, xyz, of), [xyz, of], rivals)


case("knn", "4x16,384, 2,048 centres, 16 nearest")(lambda: nearest(16_384, 2048, 16))
case("knn", "4x4,096, all centres, 16 nearest")(lambda: nearest(4096, 4096, 16))


@case("knn_query", "20,000 points, 16 nearest")
def _() -> Contest:
    points, ends = cloud(20_000, 1)[0].contiguous(), torch.tensor([20_000], dtype=torch.int32)
    count = torch.tensor(16, device="cpu")
    return Contest(
        lambda: ops.knn_query(count, points, ends)[0], [points],
        {"torch": lambda: torch.cdist(points, points).topk(16, largest=False)[1].int()},
    )  # fmt: skip


@case("three_nn", "4x16,384, of 2,048")
def _() -> Contest:
    target, source = cloud(16_384), cloud(2048)

    def mmcv() -> list[Tensor]:
        distances, to = torch.empty(CLOUDS, 16_384, 3), torch.empty(CLOUDS, 16_384, 3, dtype=torch.int32)
        gpu_rivals.mmcv().three_nn_forward(target, source, distances, to, CLOUDS, 16_384, 2048)
        return [distances.sqrt(), to]

    return Contest(lambda: ops.three_nn(target, source), [target, source], mmcv_rival(mmcv))


@differentiable("three_interpolate", "8x256, 1,024 to 4,096 points")
def _(dtype: torch.dtype) -> Call:
    weight, indices = torch.rand(8, 4096, 3).softmax(2), torch.randint(1024, (8, 4096, 3)).int()

    def forward(t: Tensor) -> Tensor:
        to = t.new_empty(8, 256, 4096)
        gpu_rivals.mmcv().three_interpolate_forward(t, indices, weight, to, 8, 256, 1024, 4096)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        gpu_rivals.mmcv().three_interpolate_backward(grad, indices, weight, to, 8, 256, 4096, 1024)
        return [to]

    call = Call(lambda t: ops.three_interpolate(t, indices, weight), [torch.randn(8, 256, 1024)])
    call.also_reads = [indices, weight]
    return call.against_mmcv(forward, backward)


@differentiable("group_points", "8x64, 4,096 points, 1,024 groups of 32")
def _(dtype: torch.dtype) -> Call:
    indices = torch.randint(4096, (8, 1024, 32)).int()

    def forward(t: Tensor) -> Tensor:
        to = t.new_empty(8, 64, 1024, 32)
        gpu_rivals.mmcv().group_points_forward(t, indices, to, 8, 64, 4096, 1024, 32)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        gpu_rivals.mmcv().group_points_backward(grad, indices, to, 8, 64, 4096, 1024, 32)
        return [to]

    call = Call(lambda t: ops.grouping_operation(t, indices), [torch.randn(8, 64, 4096)], also_reads=[indices])
    return call.against_mmcv(forward, backward)


def in_boxes(every: bool) -> Contest:
    points = cloud(20_000)
    boxes = torch.rand(CLOUDS, 64, 7) * torch.tensor([40.0, 40, 1, 3, 3, 3, 3]) + torch.tensor([0, 0, 0, 1.0, 1, 1, 0])
    name = f"points_in_boxes_{'all' if every else 'part'}"

    def mmcv() -> Tensor:
        shape = (CLOUDS, 20_000, 64) if every else (CLOUDS, 20_000)
        to = torch.full(shape, 0 if every else -1, dtype=torch.int32)
        getattr(gpu_rivals.mmcv(), f"{name}_forward")(boxes, points, to)
        return to

    return Contest(lambda: getattr(torch.ops.polyop, name)(points, boxes), [points, boxes], mmcv_rival(mmcv))


case("points_in_boxes_all", "4x20,000 points, 64 boxes")(lambda: in_boxes(True))
case("points_in_boxes_part", "4x20,000 points, 64 boxes")(lambda: in_boxes(False))
