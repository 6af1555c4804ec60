# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import Cases, Contest, call, mmcv_rival
from contenders import bytes_of, session, with_torch
from inputs import POINTS, clouds, quarter, streets
from synthetic_scenes import room
from torch import Tensor

import polyop.functional as ops

cases = Cases(__file__)


@cases.cpu("room, 16,384 points, 4,096 centres, 16 neighbours")
def _(threads: int) -> Contest:
    from scipy.spatial import cKDTree

    xyz, centres = room(16384), room(4096, 1)
    ours = session("polyop::KNN", {"xyz": xyz, "center": centres}, threads, attributes={"k": 16})
    tx, tc = torch.from_numpy(xyz), torch.from_numpy(centres)
    theirs = with_torch(lambda: torch.cdist(tc, tx).topk(16, largest=False).indices.transpose(1, 2).int())

    def tree() -> list[np.ndarray]:
        return [cKDTree(xyz[0]).query(centres[0], 16, workers=threads)[1].T.astype(np.int32)[None]]

    return Contest(
        ours,
        {"torch cdist + topk": theirs, "SciPy cKDTree (build + query)": tree},
        bytes_of(xyz, centres) + 4096 * 16 * 4,
        same=lambda a, b: (a[0] == b[0]).mean() > 0.99,
    )


def nearest(points: int, centres: int, k: int) -> Contest:
    xyz = clouds(points)
    of = xyz[:, :centres].contiguous()

    def mmcv() -> Tensor:
        to, distances = torch.zeros(4, centres, k, dtype=torch.int32), torch.zeros(4, centres, k)
        projects.mmcv().knn_forward(xyz, of, to, distances, 4, points, centres, k)
        return to.transpose(2, 1).contiguous()

    others = mmcv_rival(mmcv)
    others["torch"] = lambda: torch.cdist(of, xyz).topk(k, largest=False)[1].int().transpose(2, 1)
    return Contest(lambda: ops.knn(k, xyz, of), reads=[xyz, of], rivals=others)


cases.gpu("4x16,384, 2,048 centres, 16 nearest")(lambda: nearest(16_384, 2048, 16))
cases.gpu("4x4,096, all centres, 16 nearest")(lambda: nearest(4096, 4096, 16))
cases.growth("points, a quarter asks", 1000, POINTS)(lambda n: call("knn", streets(n), quarter(n)[None], k=16))
