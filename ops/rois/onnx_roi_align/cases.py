# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of onnx_roi_align."""

import torch
from benchmark import Call, Cases, call

from ops.rois.cases import BINS, image_of_rois, rois_over

cases = Cases(__file__)


@cases.growth("rois", 100, 100_000)
def _(n: int) -> Call:
    return call("onnx_roi_align", image_of_rois(), rois_over(n)[:, 1:], torch.zeros(n, dtype=torch.int64), **BINS)
