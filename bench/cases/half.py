# SPDX-License-Identifier: Apache-2.0
"""Half precision compared with float: the same node with rounded features and weights."""

from __future__ import annotations

from harness import HALVES, Case, Contest

from cases.attention import attention, ms_deform_attn
from cases.convolutions import deform_conv
from cases.maps import corner_pool, cumulative, instance_norm
from cases.regions import roi_align
from cases.sampling import grid_sampler, resize

SIZES = ("scales",)  # inputs that stay float32


def in_half(case: Case, name: str) -> Case:
    def make(threads: int) -> Contest:
        run = case.make(threads).ours
        return Contest(run.in_half(HALVES[name], SIZES), yardstick=("the same in f32", run))

    return Case(case.operator, f"{case.title}, {name}", make)


CASES = [
    in_half(case, name)
    for case in (
        roi_align(256, 200, 304, 1000, 7),
        grid_sampler(0, True),
        grid_sampler(0, False),
        resize(3, 1080, 1920),
        cumulative("cummax", 1),
        corner_pool(0),
        instance_norm(),
        ms_deform_attn(None),
        attention(),
        deform_conv(modulated=True),
    )
    for name in HALVES
]
