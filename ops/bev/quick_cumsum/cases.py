# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import POINTS, gaussian

from ops.bev.cases import ranks, runs

cases = Cases(__file__)


def bev_ranks(points: int, cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the cell of each of `points` points, sorted by cell, and each cell's start and number of points."""
    rng = np.random.default_rng(7)
    cell = np.sort(rng.integers(0, cells, points)).astype(np.int32)
    starts = np.flatnonzero(np.diff(cell, prepend=-1)).astype(np.int32)
    return cell, starts, np.diff(starts, append=points).astype(np.int32)


@cases.cpu("300,000 points, 80 channels, 360x360")
def _(threads: int) -> Contest:
    cell, starts, lengths = bev_ranks(300_000, 360 * 360)
    x = normal(10, len(cell), 80)
    position = np.stack([cell // 360, cell % 360, cell * 0, cell * 0], 1).astype(np.int32)
    size = {"batch_size": 1, "dimension": 1, "height": 360, "width": 360}
    ours = session(
        "autoware::QuickCumsumCuda", {"x": x, "g": position, "l": lengths, "s": starts}, threads, attributes=size
    )
    tx, tc = torch.from_numpy(x), torch.from_numpy(cell)

    def formulation() -> torch.Tensor:
        return torch.zeros(360 * 360, 80).index_add_(0, tc, tx).view(1, 1, 360, 360, 80)

    moved = bytes_of(x) + 360 * 360 * 80 * 4
    return Contest(ours, {"torch index_add": with_torch(formulation)}, moved, tolerance=1e-3)


@cases.growth("points", 1000, POINTS)
def _(n: int) -> Call:
    cell, starts, lengths, side = runs(n)
    position = torch.stack([cell // side, cell % side, cell * 0, cell * 0], 1)
    return call(
        "quick_cumsum", gaussian(n, 16), position, lengths, starts, batch_size=1, dimension=1, height=side, width=side
    )


@cases.gradient("quick_cumsum 150,000 points, 80 channels to 128x128")
def _() -> Call:
    cells, starts, lengths = ranks(150_000, 128 * 128)
    positions = torch.stack([cells // 128, cells % 128, cells * 0, cells * 0], 1)
    tensors = [torch.randn(150_000, 80), positions, lengths, starts]
    return of("quick_cumsum", [*tensors], batch_size=1, dimension=1, height=128, width=128)


cases.small(
    [(3, 4), torch.tensor([[0, 1, 0, 0], [0, 1, 0, 0], [1, 2, 0, 1]]), torch.tensor([2, 1]), torch.tensor([0, 2])],
    batch_size=2,
    dimension=1,
    height=2,
    width=3,
)
