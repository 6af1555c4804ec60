# SPDX-License-Identifier: Apache-2.0
import projects
import torch
from benchmark import Cases, Contest, call, mmcv_rival
from contenders import bytes_of, session, with_torch
from inputs import POINTS, clouds, quarter, streets
from synthetic_scenes import room
from torch import Tensor

import polyop.functional as ops

cases = Cases(__file__)


@cases.cpu("room, 16,384 points, 4,096 centres, {} m, 32 samples", over=[0.1, 0.4])
def _(threads: int, radius: float) -> Contest:
    xyz, centres = room(16384), room(4096, 1)
    feeds = {"xyz": xyz, "center": centres}
    ours = session("polyop::BallQuery", feeds, threads, attributes={"max_radius": radius, "sample_num": 32})
    tx, tc = torch.from_numpy(xyz), torch.from_numpy(centres)

    def formulation() -> torch.Tensor:
        index = torch.arange(16384).expand(1, 4096, -1).clone()
        index[torch.cdist(tc, tx, compute_mode="donot_use_mm_for_euclid_dist") >= radius] = 16384
        index = index.topk(32, largest=False, sorted=True).values
        first = index[..., :1]
        return torch.where(index == 16384, torch.where(first == 16384, 0, first), index).int()

    return Contest(
        ours,
        {"torch cdist + topk": with_torch(formulation)},
        bytes_of(xyz, centres) + 4096 * 32 * 4,
        same=lambda a, b: (a[0] == b[0]).mean() > 0.999,
    )


@cases.gpu("4x16,384, 2,048 centres, 32 within 1.2")
def _() -> Contest:
    xyz = clouds(16_384)
    centres = xyz[:, ::8].contiguous()

    def mmcv() -> Tensor:
        to = torch.zeros(4, 2048, 32, dtype=torch.int32)
        projects.mmcv().ball_query_forward(centres, xyz, to, 4, 16_384, 2048, 0.0, 1.2, 32)
        return to

    return Contest(lambda: ops.ball_query(0.0, 1.2, 32, xyz, centres), reads=[xyz, centres], rivals=mmcv_rival(mmcv))


cases.growth("points, a quarter asks", 1000, POINTS)(
    lambda n: call("ball_query", streets(n), quarter(n)[None], max_radius=0.3, sample_num=16)
)
