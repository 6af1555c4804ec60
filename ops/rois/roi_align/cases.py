# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import F16, F32, Call, Cases, Contest, call, of
from contenders import bytes_of, in_openvino, normal, session
from torch import Tensor

from ops.rois import cases as shared

cases = Cases(__file__)


@cases.cpu("{0}x{1}x{2}, {3} rois, {4}x{4}", over=[(256, 200, 304, 1000, 7), (256, 50, 76, 300, 14)])
def pooled(threads: int, channels: int, height: int, width: int, rois: int, bins: int) -> Contest:
    x, boxes = normal(0, 1, channels, height, width), shared.rois_of(rois, width, height, 0.25)
    common = {"output_height": bins, "output_width": bins, "spatial_scale": 0.25, "sampling_ratio": 2, "mode": "avg"}
    ours = session("mmcv::MMCVRoiAlign", {"x": x, "rois": boxes}, threads, attributes={**common, "aligned": 1})
    built_in = session(
        "RoiAlign",
        {"x": x, "rois": boxes[:, 1:].copy(), "batch": np.zeros(rois, np.int64)},
        threads,
        opset=16,
        attributes={**common, "coordinate_transformation_mode": "half_pixel"},
    )
    openvino = in_openvino(
        "ROIAlign", 9, [x, boxes[:, 1:].copy(), np.zeros(rois, np.int32)], threads, pooled_h=bins, pooled_w=bins,
        sampling_ratio=2, spatial_scale=0.25, mode="avg", aligned_mode="half_pixel_for_nn",
    )  # fmt: skip
    moved = bytes_of(x) + rois * channels * bins * bins * 4
    return Contest(ours, {"ONNX Runtime RoiAlign": built_in, "OpenVINO ROIAlign": openvino}, moved)


cases.cpu("small: 3x32x32, 10 rois, 7x7")(lambda threads: pooled(threads, 3, 32, 32, 10, 7))
cases.in_half("256x200x304, 1000 rois, 7x7")
cases.off_line("256x200x304, 1000 rois, 7x7")


@cases.differentiable("256x200x304, 1,000 rois of 7x7", F32, F16)
def of_boxes(
    dtype: torch.dtype, shape: tuple[int, int, int] = shared.LARGE, count: int = 1000, mode: str = "avg"
) -> Call:
    x, rois = shared.features(shape, dtype), shared.boxes(shape, count, dtype=dtype)
    call = of("roi_align", [x, rois], **shared.BINS, sampling_ratio=2, mode=mode)
    if mode == "avg":
        call.against_torchvision(lambda t: torch.ops.torchvision.roi_align(t, rois, 1.0, 7, 7, 2, True))
    at = [x.new_zeros(0 if mode == "avg" else (count, shape[0], 7, 7)) for _ in range(2)]
    rest = (7, 7, 1.0, 2, 1 if mode == "avg" else 0, True)

    def forward(t: Tensor) -> Tensor:
        to = t.new_empty(count, shape[0], 7, 7)
        projects.mmcv().roi_align_forward(t, rois, to, *at, *rest)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        projects.mmcv().roi_align_backward(grad, rois, *at, to, *rest)
        return [to]

    return call.against_mmcv(forward, backward, on_cpu=True)


cases.gradient("roi_align 256x100x152, 512 of 7x7")(lambda: of_boxes(F32, shared.MEDIUM, 512))
cases.gradient("roi_align maximum, 256x100x152, 512 of 7x7")(lambda: of_boxes(F32, shared.MEDIUM, 512, "max"))
cases.growth("rois", 100, 100_000)(
    lambda n: call("roi_align", shared.image_of_rois(), shared.rois_over(n), **shared.BINS)
)
cases.small([(2, 2, 6, 5), shared.small_rois(5)], **shared.SMALL_BINS, sampling_ratio=2)
cases.small([(2, 2, 6, 5), shared.small_rois(5)], "by-extents", **shared.SMALL_BINS)
cases.small([(2, 2, 6, 5), (0, 5)], "no-boxes", **shared.SMALL_BINS)
