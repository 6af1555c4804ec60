# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import F32, Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session
from inputs import PIXELS, image, side_of, uniform
from torch import Tensor

from ops.rois.cases import features

cases = Cases(__file__)


@cases.cpu("256x100x152, 5 points")
def _(threads: int) -> Contest:
    x, rng = normal(0, 1, 256, 100, 152), np.random.default_rng(12)
    boxes = np.concatenate([rng.uniform(0, 100, (1, 100, 152, 2)), rng.uniform(4, 30, (1, 100, 152, 2)),
                            rng.uniform(-3, 3, (1, 100, 152, 1))], -1).astype(np.float32)  # fmt: skip
    ours = session(
        "mmcv::MMCVRotatedFeatureAlign",
        {"x": x, "boxes": boxes},
        threads,
        attributes={"spatial_scale": 1.0, "points": 5},
    )
    return Contest(ours, {}, bytes_of(x) * 2 + bytes_of(boxes))


@cases.gradient("rotated_feature_align 256x100x152, 5 points")
@cases.differentiable("256x100x152, 5 points")
def _(dtype: torch.dtype = F32) -> Call:
    best = torch.rand(1, 100, 152, 5) * torch.tensor([800.0, 1200, 40, 40, 3])

    def forward(t: Tensor) -> Tensor:
        to = torch.zeros_like(t)
        projects.mmcv().rotated_feature_align_forward(t, best, to, 0.125, 5)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        projects.mmcv().rotated_feature_align_backward(grad, best, to, 0.125, 5)
        return [to]

    call = of("rotated_feature_align", [features(), best], spatial_scale=0.125, points=5)
    return call.against_mmcv(forward, backward, on_cpu=True)


@cases.growth("pixels", 128 * 128, PIXELS)
def _(n: int) -> Call:
    side = side_of(n)
    boxes = torch.cat([uniform(1, side, side, 2, high=side), uniform(1, side, side, 2, low=4, high=30),
                       uniform(1, side, side, 1, low=-3, high=3)], -1)  # fmt: skip
    return call("rotated_feature_align", image(n), boxes, points=5)


cases.small([(2, 3, 4, 5), (2, 4, 5, 5)], spatial_scale=0.5, points=5)
