# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Cases, call
from inputs import street

cases = Cases(__file__)

cases.growth("points of each side, a quarter is chosen", 100, 20_000)(
    lambda n: call("furthest_point_sampling_with_dist", torch.cdist(street(n), street(n))[None], num_points=n // 4)
)
