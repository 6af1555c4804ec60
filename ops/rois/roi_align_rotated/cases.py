# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import F32, Call, Cases, Contest, call, of
from contenders import bytes_of, in_openvino, normal, session
from torch import Tensor

from ops.rois import cases as shared

cases = Cases(__file__)


@cases.cpu("256x200x304, 1000 rois, 7x7", published={"MMCV (elsewhere)": (524, 519)})
def _(threads: int) -> Contest:
    x, rotated = normal(0, 1, 256, 200, 304), shared.rotated_of(shared.rois_of(1000, 304, 200, 0.25), 2)
    attributes = {**shared.BINS, "spatial_scale": 0.25, "sampling_ratio": 2, "aligned": 1, "clockwise": 0}
    ours = session("mmcv::MMCVRoIAlignRotated", {"x": x, "rois": rotated}, threads, attributes=attributes)
    feeds = [x, rotated[:, 1:].copy(), np.zeros(1000, np.int32)]
    openvino = in_openvino("ROIAlignRotated", 15, feeds, threads, pooled_h=7, pooled_w=7, sampling_ratio=2,
                           spatial_scale=0.25, clockwise_mode=False)  # fmt: skip
    return Contest(ours, {"OpenVINO ROIAlignRotated": openvino}, bytes_of(x) + 1000 * 256 * 49 * 4)


@cases.differentiable("256x200x304, 1,000 rois of 7x7")
def of_boxes(dtype: torch.dtype, shape: tuple[int, int, int] = shared.LARGE, count: int = 1000) -> Call:
    rois, rest = shared.boxes(shape, count, rotated=True), (7, 7, 1.0, 2, True, False)

    def forward(t: Tensor) -> Tensor:
        to = t.new_empty(count, shape[0], 7, 7)
        projects.mmcv().roi_align_rotated_forward(t, rois, to, *rest)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        projects.mmcv().roi_align_rotated_backward(grad, rois, to, *rest)
        return [to]

    call = of("roi_align_rotated", [shared.features(shape), rois], **shared.BINS, sampling_ratio=2)
    return call.against_mmcv(forward, backward, on_cpu=True)


cases.gradient("roi_align_rotated 256x100x152, 512 of 7x7")(lambda: of_boxes(F32, shared.MEDIUM, 512))
cases.growth("rois", 100, 100_000)(
    lambda n: call("roi_align_rotated", shared.image_of_rois(), shared.rois_over(n, True), **shared.BINS)
)
cases.small([(2, 2, 6, 5), shared.small_rois(6)], **shared.SMALL_BINS, sampling_ratio=2)
cases.small([(2, 2, 6, 5), shared.small_rois(6)], "by-extents", **shared.SMALL_BINS)
