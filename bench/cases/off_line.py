# SPDX-License-Identifier: Apache-2.0
"""Outputs at unaligned addresses."""

from __future__ import annotations

from harness import Case, Contest

from cases.maps import corner_pool, cumulative, instance_norm
from cases.regions import roi_align
from cases.sampling import grid_sampler


def output_off_line(case: Case) -> Case:
    """Returns the case with its outputs after the start of a cache line, as in NumPy's arrays, compared with outputs at
    its start.
    """

    def make(threads: int) -> Contest:
        run = case.make(threads).ours
        return Contest(run.placed(0, 16), yardstick=("output at a line's start", run.placed(0, 0)))

    return Case(case.operator, f"{case.title}, output 16 bytes off", make)


CASES = [
    output_off_line(case)
    for case in (
        roi_align(256, 200, 304, 1000, 7),
        grid_sampler(0, True),
        grid_sampler(0, False),
        *(cumulative("cummax", dim) for dim in range(3)),
        corner_pool(0),
        corner_pool(3),
        instance_norm(),
    )
]
