# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
import with_spconv
from benchmark import Cases, Contest, call, mmcv_rival
from contenders import bytes_of, session, with_torch
from inputs import POINTS, street
from synthetic_scenes import sweep
from torch import Tensor

from ops.voxels.cases import GRID, PILLARS, area, cells_of, grid_tensors, points

cases = Cases(__file__)


@cases.cpu("120,000 points, 432 x 496 pillars of 32")
def _(threads: int) -> Contest:
    points = sweep()
    ours = session("polyop::HardVoxelize", {"points": points}, threads, ["voxels", "coors", "num"],
                   attributes={**PILLARS, "max_num_points": 32, "max_voxels": 40_000})  # fmt: skip
    tp = torch.from_numpy(points)

    def formulation() -> list[torch.Tensor]:
        cell, inside = cells_of(tp)
        kept = inside.nonzero().squeeze(1)
        key = cell[kept, 1] * 432 + cell[kept, 2]
        _, run, size = torch.unique(key, return_inverse=True, return_counts=True)
        first = torch.full(size.shape, len(key)).scatter_reduce(0, run, torch.arange(len(key)), "amin")
        number = torch.empty_like(size)
        number[first.argsort()] = torch.arange(len(size))
        order = run.argsort(stable=True)
        slot = torch.arange(len(key)) - (size.cumsum(0) - size)[run[order]]
        order, slot = order[slot < 32], slot[slot < 32]
        voxels = torch.zeros(len(size), 32, 4)
        voxels[number[run[order]], slot] = tp[kept[order]]
        coors = cell[kept[first.sort().values]]
        return [voxels, coors, torch.empty_like(size).index_put_((number,), size).clamp(max=32).int()]

    written = bytes_of(*[np.asarray(o.numpy()) for o in ours()])
    spconv = with_spconv.voxels(points, PILLARS["voxel_size"], PILLARS["point_cloud_range"], 40_000, 32)
    rivals = {"torch unique + index_put": with_torch(formulation), "spconv": spconv}
    return Contest(ours, rivals, bytes_of(points) + written)


def voxelized(deterministic: bool) -> Contest:
    cloud, size_and_range = points(), grid_tensors()

    def mmcv() -> list[Tensor]:
        voxels, coors = torch.zeros(40_000, 20, 5), torch.zeros(40_000, 3, dtype=torch.int32)
        counts, count = torch.zeros(40_000, dtype=torch.int32), torch.zeros((), dtype=torch.int64, device="cpu")
        projects.mmcv().hard_voxelize_forward(
            cloud, *size_and_range, voxels, coors, counts, count, 20, 40_000, 3, deterministic
        )
        return [t[: int(count)] for t in (voxels, coors, counts)]

    def ours() -> list[Tensor]:
        return list(torch.ops.polyop.hard_voxelize(cloud, **GRID, max_num_points=20, max_voxels=40_000)[:3])

    def same(a: list[Tensor], b: list[Tensor]) -> bool:
        return abs(len(a[0]) - len(b[0])) <= 0.002 * len(a[0])

    # MMCV's other kernel lists the voxels, and fills them, in another order at every call.
    return Contest(ours, reads=[cloud], rivals=mmcv_rival(mmcv), same=None if deterministic else same)


for _how, _deterministic in (("deterministic", True), ("MMCV's kernel is not deterministic", False)):
    cases.gpu(f"120,000 points, pillars, 20 points, 40,000 voxels, {_how}", capturable=False)(
        lambda deterministic=_deterministic: voxelized(deterministic)
    )
cases.growth("points", 1000, POINTS)(
    lambda n: call("hard_voxelize", street(n, 4), max_num_points=8, max_voxels=max(1, n // 4), **area(n))
)
