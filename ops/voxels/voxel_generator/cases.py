# SPDX-License-Identifier: Apache-2.0
import numpy as np
from benchmark import Call, Cases, Contest, call
from contenders import bytes_of, session
from inputs import POINTS, ends, street
from synthetic_scenes import sweep

from ops.voxels.cases import PILLARS, area

cases = Cases(__file__)


@cases.cpu("120,000 points, 10,000 pillars of 32")
def _(threads: int) -> Contest:
    points, num = sweep()[None], np.array([120_000], np.int32)
    attributes = {**PILLARS, "max_num_points_per_voxel": 32, "max_voxels": 10_000, "voxel_feature_num": 10}
    ours = session(
        "::VoxelGeneratorPlugin", {"points": points, "num": num}, threads, ["v", "c", "n"], attributes=attributes
    )
    return Contest(ours, {}, bytes_of(points) + 10_000 * (32 * 10 + 4) * 4)


@cases.growth("points", 1000, POINTS)
def _(n: int) -> Call:
    return call("voxel_generator", street(n, 4)[None], ends(n), max_num_points_per_voxel=8, max_voxels=max(1, n // 4),
                voxel_feature_num=10, **area(n))  # fmt: skip
