# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, Cases, call

from ops.rois import cases as shared

cases = Cases(__file__)


@cases.gradient("multi_level_rotated_roi_align, 4 levels of 256x200x304, 512 of 7x7")
def _() -> Call:
    rois = shared.boxes(shared.LARGE, rotated=True, scale=4)
    return Call(lambda *t: torch.ops.polyop.multi_level_rotated_roi_align(rois, t, **shared.PYRAMID), shared.pyramid())


cases.growth("rois", 100, 100_000)(
    lambda n: call(
        "multi_level_rotated_roi_align", shared.rois_over(n, True), shared.pyramid_of_rois(), **shared.PYRAMID_OF_ROIS
    )
)
cases.small([shared.small_rois(6, 18), (2, 2, 6, 5), (2, 2, 3, 2)], **shared.SMALL_PYRAMID, sampling_ratio=2)
