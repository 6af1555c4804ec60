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


@cases.cpu("room, 16,384 points, 4,096 sources")
def _(threads: int) -> Contest:
    from scipy.spatial import cKDTree

    target, source = room(16384), room(4096, 1)
    ours = session("polyop::ThreeNN", {"target": target, "source": source}, threads, ["dist", "idx"])
    tt, ts = torch.from_numpy(target), torch.from_numpy(source)
    theirs = with_torch(lambda: torch.cdist(tt, ts).topk(3, largest=False).values)

    def tree() -> list[np.ndarray]:
        return [cKDTree(source[0]).query(target[0], 3, workers=threads)[0].astype(np.float32)[None]]

    return Contest(
        ours,
        {"torch cdist + topk": theirs, "SciPy cKDTree (build + query)": tree},
        bytes_of(target, source) + 16384 * 24,
        same=lambda a, b: np.allclose(a[0], b[0], atol=2e-3),
    )


@cases.gpu("4x16,384, of 2,048")
def _() -> Contest:
    target, source = clouds(16_384), clouds(2048)

    def mmcv() -> list[Tensor]:
        distances, to = torch.empty(4, 16_384, 3), torch.empty(4, 16_384, 3, dtype=torch.int32)
        projects.mmcv().three_nn_forward(target, source, distances, to, 4, 16_384, 2048)
        return [distances.sqrt(), to]

    return Contest(lambda: ops.three_nn(target, source), reads=[target, source], rivals=mmcv_rival(mmcv))


cases.growth("points, a quarter are sources", 1000, POINTS)(lambda n: call("three_nn", streets(n), quarter(n)[None]))
