# SPDX-License-Identifier: Apache-2.0

from benchmark import Call, Cases, Contest, call, of
from contenders import bytes_of, in_torch, normal, session

from ops.rois.cases import POOLED, boxes, features, image_of_rois, rois_of, rois_over, rotated_of, small_rois

cases = Cases(__file__)


@cases.cpu("256x50x76, 500 rois, 7x7, 8 orientations")
def _(threads: int) -> Contest:
    x, rotated = normal(0, 1, 256, 50, 76), rotated_of(rois_of(500, 76, 50, 0.0625), 4)
    attributes = {**POOLED, "spatial_scale": 0.0625, "num_samples": 2, "num_orientations": 8}
    ours = session("polyop::RiRoIAlignRotated", {"x": x, "rois": rotated}, threads, attributes=attributes)
    rival = in_torch("riroi_align_rotated", x, rotated, **attributes, clockwise=0)
    return Contest(ours, {"torch formulation": rival}, bytes_of(x) + 500 * 256 * 49 * 4, tolerance=1e-3)


@cases.gradient("riroi_align_rotated 256x100x152, 512 of 7x7, 8 orientations")
def _() -> Call:
    inputs = [features(), boxes(rotated=True)]
    return of("riroi_align_rotated", inputs, **POOLED, num_samples=2, num_orientations=8)


cases.growth("rois", 100, 100_000)(lambda n: call("riroi_align_rotated", image_of_rois(), rois_over(n, True), **POOLED))
cases.small([(2, 4, 6, 5), small_rois(6)], pooled_height=2, pooled_width=3, num_samples=2, num_orientations=2)
cases.small([(2, 4, 6, 5), (0, 6)], "no-boxes", num_orientations=2)
