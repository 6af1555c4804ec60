# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Cases, call

from ops.rois.cases import BINS, image_of_rois, rois_over

cases = Cases(__file__)

cases.growth("rois", 100, 100_000)(
    lambda n: call("onnx_roi_align", image_of_rois(), rois_over(n)[:, 1:], torch.zeros(n, dtype=torch.int64), **BINS)
)
