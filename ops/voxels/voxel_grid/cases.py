# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest, call
from contenders import bytes_of, session, with_torch
from inputs import POINTS, street

from ops.voxels.cases import CELL

cases = Cases(__file__)


@cases.cpu("1,000,000 points")
def _(threads: int) -> Contest:
    pos = (np.random.default_rng(9).random((1_000_000, 3)) * 50).astype(np.float32)
    size, start = np.full(3, 0.5, np.float32), np.zeros(3, np.float32)
    end = np.full(3, 50, np.float32)
    feeds = {"pos": pos, "size": size, "start": start, "end": end}
    ours = session("custom::torch_cluster_grid", feeds, threads)
    t = [torch.from_numpy(v) for v in (pos, size, start)]
    strides = torch.tensor([1, 101, 101 * 101])
    theirs = with_torch(lambda: (((t[0] - t[2]) / t[1]).long() * strides).sum(1))
    return Contest(ours, {"torch formulation": theirs}, bytes_of(pos) + 8e6)


cases.growth("points", 1000, POINTS)(
    lambda n: call("voxel_grid", street(n), torch.full((3,), CELL), torch.zeros(3), torch.full((3,), 0.1 * n**0.5))
)
