# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import F32, Call, Cases, Contest
from contenders import bytes_of, normal, session, with_torch
from inputs import POINTS
from synthetic_scenes import scenes
from torch import Tensor

from ops.bev.cases import bev, lifted

cases = Cases(__file__)


@cases.cpu("6 cameras of 59 depths, 16x44, 80 channels, 128x128")
def _(threads: int) -> Contest:
    """BEVDet: six cameras of 16 x 44 pixels, 59 depths, 80 channels, a view of 128 x 128."""
    rng = np.random.default_rng(8)
    depth = rng.random((6, 59, 16, 44), dtype=np.float32)
    feat = normal(9, 6, 16, 44, 80)
    lift = scenes.lift()
    feeds = {"depth": depth, "feat": feat, **vars(lift)}
    of_depth, pixel, cell = lift.ranks_depth, lift.ranks_feat, lift.ranks_bev
    size = {"out_height": 128, "out_width": 128}
    ours = session("mmdeploy::bev_pool_v2", feeds, threads, attributes=size)
    td, tf, di, fi, bi = (torch.from_numpy(t) for t in (depth.ravel(), feat.reshape(-1, 80), of_depth, pixel, cell))

    def formulation() -> torch.Tensor:
        return torch.zeros(128 * 128, 80).index_add_(0, bi, td[di, None] * tf[fi]).view(1, 128, 128, 80)

    moved = bytes_of(depth, feat, of_depth, pixel) + 128 * 128 * 80 * 4
    return Contest(ours, {"torch index_add": with_torch(formulation)}, moved, tolerance=1e-3)


@cases.gradient("bev_pool 150,000 points, 80 channels to 128x128")
@cases.differentiable("150,000 points, 80 channels to 128x128")
def _(dtype: torch.dtype = F32) -> Call:
    call = bev("bev_pool")
    at_depth, at_feat, cells, *_ = (t.long() for t in call.also_reads)

    def composed(depth: Tensor, feat: Tensor) -> Tensor:
        rows = depth.flatten()[at_depth, None] * feat.flatten(0, 2)[at_feat]
        return feat.new_zeros(128 * 128, 80).index_add(0, cells, rows).view(1, 128, 128, 80)

    return call.beside(composed)


cases.growth("points", 1000, POINTS)(lifted)
cases.small(
    [(1, 2, 2, 2), (1, 2, 2, 4), torch.tensor([0, 7, 3]), torch.tensor([0, 3, 1]), torch.tensor([5, 5, 2]),
    torch.tensor([0, 2]), torch.tensor([2, 1])], out_height=2, out_width=3,
)  # fmt: skip
