# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import F32, Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import POINTS, gaussian, street
from torch import Tensor

from ops.boxes3d.cases import cars, cars_over, inside, points_near

cases = Cases(__file__)


@cases.cpu("16,384 points, 16 channels, 128 boxes, 14x14x14 cells, averages")
def _(threads: int) -> Contest:
    rois = cars(128, 70)
    points, features = points_near(rois, 16384), normal(39, 16384, 16)
    ours = session(
        "polyop::RoIAwarePool3d",
        {"rois": rois, "points": points, "features": features},
        threads,
        attributes={"out_size": [14, 14, 14], "max_pts_per_voxel": 128, "mode": "avg"},
    )
    tp, tr, tf = (torch.from_numpy(t) for t in (points, rois, features))

    def formulation() -> torch.Tensor:  # no cell is full
        holds, position = inside(tp, tr)
        box, point = holds.nonzero(as_tuple=True)
        i, j, k = (position[box, point] / tr[box, 3:6] * 14).long().clamp(0, 13).T
        row = ((box * 14 + i) * 14 + j) * 14 + k
        number = torch.zeros(128 * 14**3).index_add_(0, row, torch.ones(len(row)))
        pooled = torch.zeros(128 * 14**3, 16).index_add_(0, row, tf[point])
        return (pooled / number.clamp(min=1)[:, None]).view(128, 14, 14, 14, 16)

    moved = bytes_of(points, features) + 128 * 14**3 * 16 * 4
    return Contest(
        ours,
        {"torch formulation": with_torch(formulation)},
        moved,
        same=lambda a, b: np.mean(np.abs(a[0] - b[0]) > 1e-3) < 1e-3,
    )


@cases.gradient("roiaware_pool3d of 20,000 points, 64 boxes, 12x12x12, 64 channels")
@cases.differentiable("20,000 points, 64 boxes, 12x12x12, 64 channels")
def _(dtype: torch.dtype = F32) -> Call:
    rois = torch.rand(64, 7) * torch.tensor([40.0, 40, 1, 3, 3, 3, 3]) + torch.tensor([0, 0, 0, 1.0, 1, 1, 0])
    points = torch.rand(20_000, 3) * torch.tensor([40.0, 40, 3])
    argmax, at = torch.zeros(64, 12, 12, 12, 64, dtype=torch.int32), torch.zeros(64, 12, 12, 12, 128, dtype=torch.int32)

    def forward(t: Tensor) -> Tensor:
        to = t.new_zeros(argmax.shape)
        projects.mmcv().roiaware_pool3d_forward(rois, points, t, argmax, at.zero_(), to, 0)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        projects.mmcv().roiaware_pool3d_backward(at, argmax, grad, to, 0)
        return [to]

    call = of("roiaware_pool3d", [rois, points, torch.randn(20_000, 64)], (2,), out_size=[12, 12, 12])
    return call.against_mmcv(forward, backward)


cases.growth("points, 64 rois", 1000, POINTS)(
    lambda n: call("roiaware_pool3d", cars_over(64), street(n), gaussian(n, 4), out_size=[7, 7, 7])
)
cases.small([(3, 7), (20, 3), (20, 2)], out_size=[2, 1, 3])
