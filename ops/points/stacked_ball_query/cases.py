# SPDX-License-Identifier: Apache-2.0

from benchmark import Cases, call
from inputs import POINTS, ends, quarter, street

cases = Cases(__file__)

cases.growth("points, a quarter asks", 1000, POINTS)(
    lambda n: call(
        "stacked_ball_query", street(n), ends(n), quarter(n), ends(len(quarter(n))), max_radius=0.3, sample_num=16
    )
)
