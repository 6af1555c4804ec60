# SPDX-License-Identifier: Apache-2.0

from benchmark import Cases, call

from ops.rois.cases import pyramid_of_rois, rois_over

cases = Cases(__file__)

cases.growth("rois", 100, 100_000)(
    lambda n: call("openvino_roi_features", rois_over(n)[:, 1:], pyramid_of_rois(), pyramid_scales=[1, 2, 4, 8])
)
