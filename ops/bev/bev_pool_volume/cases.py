# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Cases
from inputs import POINTS

from ops.bev.cases import bev, lifted

cases = Cases(__file__)

cases.growth("points, 4 layers", 1000, POINTS)(lambda n: lifted(n, layers=4))
cases.gradient("bev_pool_volume 150,000 points, 80 channels to 128x128")(lambda: bev("bev_pool_volume", output_z=2))
cases.small(
    [(1, 2, 2, 2), (1, 2, 2, 4), torch.tensor([0, 7, 3]), torch.tensor([0, 3, 1]), torch.tensor([11, 11, 2]),
    torch.tensor([0, 2]), torch.tensor([2, 1])], out_height=2, out_width=3, output_z=2,
)  # fmt: skip
