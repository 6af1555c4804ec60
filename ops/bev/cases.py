# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, call, of
from inputs import gaussian, integers, uniform
from torch import Tensor


def runs(n: int) -> tuple[Tensor, Tensor, Tensor, int]:
    """Returns four points per cell of a square view: their cells, and each cell's start and number of points."""
    side = max(1, round((n / 4) ** 0.5))
    cell = integers(side * side, n).sort().values
    _, count = cell.unique_consecutive(return_counts=True)
    return cell, (count.cumsum(0) - count).int(), count.int(), side


def lifted(n: int, layers: int = 1) -> Call:
    """Into one layer, or into several."""
    cell, starts, lengths, side = runs(n)
    pixels = max(1, n // 59)
    depth = torch.arange(n, dtype=torch.int32) % (59 * pixels)
    several = {} if layers == 1 else {"output_z": layers}
    return call("bev_pool" if layers == 1 else "bev_pool_volume", uniform(1, 59, 1, pixels), gaussian(1, 1, pixels, 16),
                depth, depth % pixels, cell * layers, starts, lengths,
                out_height=side, out_width=side, **several)  # fmt: skip


def ranks(points: int, cells: int) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the cells of points, in ascending order, and the starts and lengths of equal cells."""
    of_points = torch.randint(cells, (points,)).sort()[0]
    lengths = torch.unique_consecutive(of_points, return_counts=True)[1]
    return of_points.int(), (lengths.cumsum(0) - lengths).int(), lengths.int()


def bev(operator: str, **attributes: int) -> Call:
    cells, starts, lengths = ranks(150_000, 128 * 128)
    depth, feat = torch.rand(6, 59, 16, 44), torch.randn(6, 16, 44, 80)
    at_depth, at_feat = torch.randint(depth.numel(), (150_000,)).int(), torch.randint(6 * 16 * 44, (150_000,)).int()
    inputs = [depth, feat, at_depth, at_feat, cells, starts, lengths]
    return of(operator, inputs, (0, 1), out_height=128, out_width=128, **attributes)
