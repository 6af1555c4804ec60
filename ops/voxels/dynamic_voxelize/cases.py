# SPDX-License-Identifier: Apache-2.0
import projects
import torch
from benchmark import Cases, Contest, call, mmcv_rival
from contenders import bytes_of, session, with_torch
from inputs import POINTS, street
from synthetic_scenes import sweep
from torch import Tensor

from ops.voxels.cases import COUNT, GRID, PILLARS, area, cells_of, grid_tensors, points

cases = Cases(__file__)


@cases.cpu("120,000 points, 432 x 496 pillars")
def _(threads: int) -> Contest:
    points = sweep()
    ours = session("polyop::DynamicVoxelize", {"points": points}, threads, attributes=PILLARS)
    tp = torch.from_numpy(points)

    def formulation() -> torch.Tensor:
        cell, inside = cells_of(tp)
        return torch.where(inside[:, None], cell, -1)

    return Contest(ours, {"torch formulation": with_torch(formulation)}, bytes_of(points) + 120_000 * 12)


@cases.gpu("120,000 points")
def _() -> Contest:
    cloud, size_and_range = points(), grid_tensors()

    def mmcv() -> Tensor:
        to = torch.zeros(COUNT, 3, dtype=torch.int32)
        projects.mmcv().dynamic_voxelize_forward(cloud, *size_and_range, to, 3)
        return to

    return Contest(lambda: torch.ops.polyop.dynamic_voxelize(cloud, **GRID), reads=[cloud], rivals=mmcv_rival(mmcv))


cases.growth("points", 1000, POINTS)(lambda n: call("dynamic_voxelize", street(n, 4), **area(n)))
