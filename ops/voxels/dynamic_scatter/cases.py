# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import POINTS, gaussian, integers
from synthetic_scenes import sweep
from torch import Tensor

from ops.voxels.cases import CELL, COUNT, cells_of

cases = Cases(__file__)


@cases.cpu("{} of 120,000 points, 64 channels, 432 x 496 pillars", over=["max", "mean"])
def _(threads: int, reduce: str) -> Contest:
    points = torch.from_numpy(sweep())
    cell, inside = cells_of(points)
    coors, feats = torch.where(inside[:, None], cell, -1).numpy(), normal(28, 120_000, 64)
    ours = session("polyop::DynamicScatter", {"feats": feats, "coors": coors}, threads, ["f", "c", "p", "n"],
                   attributes={"reduce_type": reduce})  # fmt: skip
    tf, tc = torch.from_numpy(feats), torch.from_numpy(coors)

    def formulation() -> list[torch.Tensor]:
        kept = (tc >= 0).all(1)
        rows, some = tf[kept], tc[kept]
        cells, slot, counts = torch.unique(some, dim=0, return_inverse=True, return_counts=True)
        empty = torch.zeros(len(cells), 64)
        if reduce == "max":
            return [empty.scatter_reduce(0, slot[:, None].expand_as(rows), rows, "amax", include_self=False), cells]
        return [empty.index_add(0, slot, rows) / counts[:, None], cells]

    moved = bytes_of(feats, coors, *[np.asarray(o.numpy()) for o in ours()])
    return Contest(ours, {"torch unique(dim=0) + scatter": with_torch(formulation)}, moved)


def scattered(reduce: str, count: int = COUNT, rows: int = 400, columns: int = 400) -> Call:
    coors = torch.stack([torch.zeros(count), torch.randint(rows, (count,)), torch.randint(columns, (count,))], 1).int()
    kept: list[Tensor] = []

    def forward(t: Tensor) -> Tensor:
        kept[:] = projects.mmcv().dynamic_point_to_voxel_forward(t, coors, reduce)
        return kept[0]

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to, (voxels, _, at, counts) = torch.zeros_like(t), kept
        projects.mmcv().dynamic_point_to_voxel_backward(to, grad, t, voxels, at, counts, reduce)
        return [to]

    return of("dynamic_scatter", [torch.randn(count, 64), coors], reduce_type=reduce).against_mmcv(forward, backward)


for _reduce in ("max", "mean"):
    cases.differentiable(f"120,000x64, {_reduce}", capturable=False)(lambda _, reduce=_reduce: scattered(reduce))
cases.gradient("dynamic_scatter 60,000x64, maximum")(lambda: scattered("max", 60_000, 200, 176))


@cases.growth("points", 1000, POINTS)
def _(n: int) -> Call:
    side = max(1, int(0.1 * n**0.5 / CELL))
    cells = torch.cat([torch.zeros(n, 1, dtype=torch.int32), integers(side, n, 2)], 1)
    return call("dynamic_scatter", gaussian(n, 16), cells)


cases.small(
    [(6, 3), torch.tensor([[0, 0, 2], [1, 0, 0], [0, 0, 2], [-1, 0, 0], [0, 0, 2], [1, 0, 0]])], reduce_type="max"
)
