# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, Cases, call

from ops.rois.cases import LARGE, PYRAMID, PYRAMID_OF_ROIS, boxes, pyramid, pyramid_of_rois, rois_over

cases = Cases(__file__)


@cases.gradient("multi_level_rotated_roi_align, 4 levels of 256x200x304, 512 of 7x7")
def _() -> Call:
    rois = boxes(LARGE, rotated=True, scale=4)
    return Call(lambda *t: torch.ops.polyop.multi_level_rotated_roi_align(rois, t, **PYRAMID), pyramid())


cases.growth("rois", 100, 100_000)(
    lambda n: call("multi_level_rotated_roi_align", rois_over(n, True), pyramid_of_rois(), **PYRAMID_OF_ROIS)
)
