# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session

from ops.rois.cases import BINS, SMALL_BINS, boxes, features, image_of_rois, rois_of, rois_over, small_rois

cases = Cases(__file__)


@cases.cpu("256x200x304, 1000 rois, 7x7, maximum")
def _(threads: int) -> Contest:
    x, boxes = normal(0, 1, 256, 200, 304), rois_of(1000, 304, 200, 0.25)[:, 1:].copy()
    common = {"output_height": 7, "output_width": 7, "spatial_scale": 0.25, "sampling_ratio": 2}
    feeds = {"x": x, "rois": boxes, "batch": np.zeros(1000, np.int32)}
    ours = session(
        "TRT::ROIAlign_TRT", feeds, threads, attributes={**common, "mode": 0, "coordinate_transformation_mode": 1}
    )
    built_in = session(
        "RoiAlign",
        {**feeds, "batch": np.zeros(1000, np.int64)},
        threads,
        opset=16,
        attributes={**common, "mode": "max", "coordinate_transformation_mode": "half_pixel"},
    )
    # OpenVINO's ROIAlign defines the maximum differently.
    return Contest(ours, {"ONNX Runtime RoiAlign": built_in}, bytes_of(x) + 1000 * 256 * 49 * 4)


@cases.gradient("tensorrt_roi_align maximum, 256x100x152, 512 of 7x7")
def _() -> Call:
    rois, images = boxes()[:, 1:].contiguous(), torch.zeros(512, dtype=torch.int32)
    return of("tensorrt_roi_align", [features(), rois, images], **BINS, sampling_ratio=2, mode="max")


@cases.growth("rois", 100, 100_000)
def _(n: int) -> Call:
    return call("tensorrt_roi_align", image_of_rois(), rois_over(n)[:, 1:], torch.zeros(n, dtype=torch.int64), **BINS)


cases.small([(2, 2, 6, 5), small_rois(5)[:, 1:], torch.tensor([0, 1, 1, 0, 1])], **SMALL_BINS, sampling_ratio=2)
cases.small([(2, 2, 6, 5), small_rois(5)[:, 1:], torch.tensor([0, 1, 1, 0, 1])], "max", **SMALL_BINS, mode="max")
