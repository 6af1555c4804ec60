# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
import torch.nn.functional as F
from benchmark import Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import gaussian

from ops.rois.cases import POOLED, boxes, features, image_of_rois, rois_of, rois_over, small_rois

cases = Cases(__file__)


@cases.cpu("256x200x304, 1000 rois, 7x7")
def _(threads: int) -> Contest:
    x, rois = normal(0, 1, 256, 200, 304), rois_of(1000, 304, 200, 0.25)
    offset = np.random.default_rng(3).normal(0, 1, (1000, 2, 7, 7)).astype(np.float32)
    attributes = {"pooled_height": 7, "pooled_width": 7, "spatial_scale": 0.25, "gamma": 0.1}
    ours = session(
        "mmcv::MMCVDeformRoIPool",
        {"x": x, "rois": rois, "o": offset},
        threads,
        attributes={**attributes, "sampling_ratio": 2.0},
    )
    tx = torch.from_numpy(x)
    corners, moved = torch.from_numpy(rois[:, 1:]) * 0.25 - 0.5, torch.from_numpy(offset)
    part = (torch.arange(14) + 0.5) / 14

    def formulation() -> torch.Tensor:
        size = corners[:, 2:] - corners[:, :2]
        position = []
        for axis, shape in ((0, (1000, 1, 1, 7, 2)), (1, (1000, 7, 2, 1, 1))):
            at = corners[:, axis, None] + size[:, axis, None] * part
            position.append(at.view(shape) + (0.1 * size[:, axis, None, None] * moved[:, axis])[:, :, None, :, None])
        px, py = torch.broadcast_tensors(*position)  # [R, bin, sample, bin, sample]
        grid = torch.stack([(2 * px.clamp(0, 303) + 1) / 304 - 1, (2 * py.clamp(0, 199) + 1) / 200 - 1], -1)
        sampled = F.grid_sample(tx, grid.view(1, 1000, 196, 2), align_corners=False)
        inside = (px >= -1) & (px <= 304) & (py >= -1) & (py <= 200)
        pooled = (sampled.view(256, 1000, 7, 2, 7, 2) * inside).mean((3, 5))
        return pooled.transpose(0, 1).contiguous()

    return Contest(
        ours, {"torch formulation": with_torch(formulation)}, bytes_of(x) + 1000 * 256 * 49 * 4, tolerance=1e-3
    )


@cases.gradient("deform_roi_pool of features and offsets, 256x100x152, 512 of 7x7")
def _() -> Call:
    inputs = [features(), boxes(), torch.randn(512, 2, 7, 7)]
    return of("deform_roi_pool", inputs, (0, 2), **POOLED, sampling_ratio=2)


cases.growth("rois", 100, 100_000)(
    lambda n: call("deform_roi_pool", image_of_rois(), rois_over(n), gaussian(n, 2, 7, 7), **POOLED)
)
cases.small([(2, 2, 6, 5), small_rois(5), (5, 2, 2, 3)], pooled_height=2, pooled_width=3)
