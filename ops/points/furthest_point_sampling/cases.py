# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import Cases, Contest, call, mmcv_rival
from contenders import bytes_of, session, with_torch
from inputs import POINTS, clouds, streets
from synthetic_scenes import room, sweep
from torch import Tensor

import polyop.functional as ops

cases = Cases(__file__)


@cases.cpu("{}, {:,} points, {:,} chosen", over=[("room", 16384, 4096), ("street", 120_000, 16384)])
def _(threads: int, scene: str, points: int, chosen: int) -> Contest:
    xyz = room(points) if scene == "room" else np.ascontiguousarray(sweep(points)[None, :, :3])
    ours = session("polyop::FurthestPointSampling", {"xyz": xyz}, threads, attributes={"num_points": chosen})
    t = torch.from_numpy(xyz[0])

    def formulation() -> torch.Tensor:
        nearest, index = torch.full((points,), torch.inf), torch.zeros(1, chosen, dtype=torch.int32)
        last = 0
        for k in range(1, chosen):
            nearest = torch.minimum(nearest, (t - t[last]).square().sum(1))
            last = int(nearest.argmax())
            index[0, k] = last
        return index

    return Contest(
        ours,
        {"torch formulation": with_torch(formulation)},
        bytes_of(xyz),
        same=lambda a, b: (a[0] == b[0]).mean() > 0.9,
    )


@cases.gpu("4x16,384, 2,048 chosen")
def _() -> Contest:
    xyz = clouds(16_384)

    def mmcv() -> Tensor:
        to, distances = torch.empty(4, 2048, dtype=torch.int32), torch.full((4, 16_384), 1e10)
        projects.mmcv().furthest_point_sampling_forward(xyz, distances, to, 4, 16_384, 2048)
        return to

    return Contest(lambda: ops.furthest_point_sample(xyz, 2048), reads=[xyz], rivals=mmcv_rival(mmcv))


cases.growth("points, a quarter is chosen", 1000, POINTS)(
    lambda n: call("furthest_point_sampling", streets(n), num_points=n // 4)
)
cases.growth("points, 1,000 are chosen", 1000, POINTS)(
    lambda n: call("furthest_point_sampling", streets(n), num_points=1000)
)
