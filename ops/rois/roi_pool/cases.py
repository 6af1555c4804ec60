# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import F32, Call, Cases, Contest, call, of
from contenders import bytes_of, in_openvino, normal, session
from torch import Tensor

from ops.rois import cases as shared

cases = Cases(__file__)


@cases.cpu("256x50x76, 500 rois, 7x7")
def _(threads: int) -> Contest:
    feeds = {"x": normal(0, 1, 256, 50, 76), "rois": shared.rois_of(500, 76, 50, 0.0625)}
    ours = session("polyop::RoIPool", feeds, threads, outputs=("y", "argmax"),
                   attributes={"output_height": 7, "output_width": 7, "spatial_scale": 0.0625})  # fmt: skip
    built_in = session("MaxRoiPool", feeds, threads, attributes={"pooled_shape": [7, 7], "spatial_scale": 0.0625})
    openvino = in_openvino(
        "ROIPooling", 2, list(feeds.values()), threads, output_roi=[7, 7], spatial_scale=0.0625, method="max"
    )
    rivals = {"ONNX Runtime MaxRoiPool": built_in, "OpenVINO ROIPooling": openvino}
    return Contest(
        ours, rivals, bytes_of(feeds["x"]) + 2 * 500 * 256 * 49 * 4, same=lambda a, b: np.array_equal(a[0], b[0])
    )


@cases.differentiable("256x200x304, 1,000 rois of 7x7")
def of_boxes(dtype: torch.dtype, shape: tuple[int, int, int] = shared.LARGE, count: int = 1000) -> Call:
    x, rois = shared.features(shape), shared.boxes(shape, count)
    call = of("roi_pool", [x, rois], **shared.BINS)
    return call.against_torchvision(lambda t: torch.ops.torchvision.roi_pool(t, rois, 1.0, 7, 7)[0])


@cases.differentiable("256x200x304, 1,000 rois of 7x7, not rounded")
def _(dtype: torch.dtype) -> Call:
    rois, argmax = shared.boxes(shared.LARGE, 1000), torch.empty(1000, 256, 7, 7, dtype=torch.int32)

    def forward(t: Tensor) -> Tensor:
        to = t.new_empty(argmax.shape)
        projects.mmcv().roi_pool_forward(t, rois, to, argmax, 7, 7, 1.0)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        projects.mmcv().roi_pool_backward(grad, rois, argmax, to, 7, 7, 1.0)
        return [to]

    return of("roi_pool", [shared.features(shared.LARGE), rois], **shared.BINS, rounded=0).against_mmcv(
        forward, backward
    )


cases.gradient("roi_pool 256x100x152, 512 of 7x7")(lambda: of_boxes(F32, shared.MEDIUM, 512))
cases.growth("rois", 100, 100_000)(
    lambda n: call("roi_pool", shared.image_of_rois(), shared.rois_over(n), **shared.BINS)
)
cases.small([(2, 2, 6, 5), shared.small_rois(5)], **shared.SMALL_BINS)
cases.small([(2, 2, 6, 5), shared.small_rois(5)], "not-rounded", **shared.SMALL_BINS, rounded=False)
cases.small([(2, 2, 6, 5), (0, 5)], "no-boxes", **shared.SMALL_BINS)
