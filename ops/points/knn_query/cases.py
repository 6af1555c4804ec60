# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest, call
from contenders import bytes_of, session
from inputs import POINTS, clouds, ends, quarter, street

import polyop.functional as ops

cases = Cases(__file__)


@cases.cpu("100k points, 25k queries, 16 neighbours, 4 segments")
def _(threads: int) -> Contest:
    from scipy.spatial import cKDTree

    rng = np.random.default_rng(10)
    xyz, new = (rng.random((n, 3)).astype(np.float32) for n in (100_000, 25_000))
    ends, new_ends = (np.arange(1, 5) * n // 4 for n in (100_000, 25_000))
    feeds = {"nsample": np.array(16, np.int64), "xyz": xyz, "offset": ends.astype(np.int32), "new_xyz": new,
             "new_offset": new_ends.astype(np.int32)}  # fmt: skip
    ours = session("custom::knnquery", feeds, threads, ["idx", "dist"])

    def trees() -> list[np.ndarray]:
        index, dist = np.empty((25_000, 16), np.int32), np.empty((25_000, 16), np.float32)
        for s in range(4):
            tree = cKDTree(xyz[s * 25_000 : (s + 1) * 25_000])
            mine = slice(s * 6250, (s + 1) * 6250)
            dist[mine], found = tree.query(new[mine], 16, workers=threads)
            index[mine] = found + s * 25_000
        return [index, dist]

    return Contest(
        ours,
        {"SciPy cKDTree (build + query)": trees},
        bytes_of(xyz, new) + 25_000 * 16 * 8,
        same=lambda a, b: np.allclose(a[1], b[1], atol=1e-6) and (a[0] == b[0]).mean() > 0.9999,
    )


@cases.gpu("20,000 points, 16 nearest")
def _() -> Contest:
    points, ends = clouds(20_000, 1)[0].contiguous(), torch.tensor([20_000], dtype=torch.int32)
    count = torch.tensor(16, device="cpu")
    return Contest(
        lambda: ops.knn_query(count, points, ends)[0],
        reads=[points],
        rivals={"torch": lambda: torch.cdist(points, points).topk(16, largest=False)[1].int()},
    )


cases.growth("points, a quarter asks", 1000, POINTS)(
    lambda n: call("knn_query", torch.tensor(16), street(n), ends(n), quarter(n), ends(len(quarter(n))))
)
