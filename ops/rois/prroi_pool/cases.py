# SPDX-License-Identifier: Apache-2.0

from benchmark import Cases, Contest, call, of
from contenders import bytes_of, in_torch, normal, session

from ops.rois.cases import POOLED, boxes, features, image_of_rois, rois_of, rois_over, small_rois

cases = Cases(__file__)


@cases.cpu("256x50x76, 500 rois, 7x7")
def _(threads: int) -> Contest:
    x, rois = normal(0, 1, 256, 50, 76), rois_of(500, 76, 50, 0.0625)
    attributes = {"pooled_height": 7, "pooled_width": 7, "spatial_scale": 0.0625}
    ours = session("mmcv::PrRoIPool", {"x": x, "rois": rois}, threads, attributes=attributes)
    return Contest(
        ours, {"torch formulation": in_torch("prroi_pool", x, rois, **attributes)}, bytes_of(x) + 500 * 256 * 49 * 4
    )


cases.gradient("prroi_pool of features and boxes, 256x100x152, 512 of 7x7")(
    lambda: of("prroi_pool", [features(), boxes()], (0, 1), **POOLED)
)
cases.growth("rois", 100, 100_000)(lambda n: call("prroi_pool", image_of_rois(), rois_over(n), **POOLED))
cases.small([(2, 2, 6, 5), small_rois(5)], pooled_height=2, pooled_width=3)
cases.small([(2, 2, 6, 5), (0, 5)], "no-boxes", pooled_height=2, pooled_width=3)
