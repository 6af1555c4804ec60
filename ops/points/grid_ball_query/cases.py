# SPDX-License-Identifier: Apache-2.0

from benchmark import Cases, call
from inputs import POINTS, quarter, streets

cases = Cases(__file__)

cases.growth("points, a quarter asks", 1000, POINTS)(
    lambda n: call("grid_ball_query", streets(n), quarter(n)[None], radius=0.3, nsample=16)
)
