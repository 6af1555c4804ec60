# SPDX-License-Identifier: Apache-2.0
from benchmark import Cases
from inputs import POINTS

from ops.bev.cases import bev, lifted

cases = Cases(__file__)

cases.growth("points, 4 layers", 1000, POINTS)(lambda n: lifted(n, layers=4))
cases.gradient("bev_pool_volume 150,000 points, 80 channels to 128x128")(lambda: bev("bev_pool_volume", output_z=2))
