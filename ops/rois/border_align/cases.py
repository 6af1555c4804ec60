# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
import torch.nn.functional as F
from benchmark import F32, Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import MILLION
from torch import Tensor

from ops.rois.cases import boxes, features, image_of_rois, rois_of, rois_over

cases = Cases(__file__)


@cases.cpu("4x256x50x76, 3800 boxes, pool_size 10")
def _(threads: int) -> Contest:
    x = normal(0, 1, 1024, 50, 76)
    boxes = rois_of(50 * 76, 76, 50, 0.0625)[None, :, 1:] * np.float32(0.0625)
    ours = session("mmcv::MMCVBorderAlign", {"x": x, "boxes": boxes}, threads, attributes={"pool_size": 10})
    tx, tb = torch.from_numpy(x), torch.from_numpy(boxes)[0]

    def formulation() -> torch.Tensor:
        part = torch.arange(11) / 10
        start, way = tb.view(-1, 2, 1, 2), (tb[:, 2:] - tb[:, :2]).view(-1, 1, 1, 2)
        along = torch.stack([part[:, None] * torch.tensor([1.0, 0]), part[:, None] * torch.tensor([0, 1.0])])
        coordinates = [
            start[:, end] + sign * way[:, 0] * along[axis] for end, sign in ((0, 1), (1, -1)) for axis in (0, 1)
        ]
        position = torch.stack(coordinates).clamp(torch.zeros(2), torch.tensor([75.0, 49]))
        grid = (2 * position + 1) / torch.tensor([76.0, 50]) - 1
        sampled = F.grid_sample(tx.view(4, 256, 50, 76), grid, align_corners=False)
        return sampled.amax(-1).permute(1, 2, 0)[None].contiguous()

    return Contest(ours, {"torch formulation": with_torch(formulation)}, bytes_of(x) * 2, tolerance=1e-3)


@cases.gradient("border_align 256x100x152, 2,000 boxes, 10")
@cases.differentiable("256x100x152, 2,000 boxes, 10")
def _(dtype: torch.dtype = F32) -> Call:
    x, rois = features(), boxes(count=2000)[None, :, 1:].contiguous()
    argmax = torch.zeros(1, 64, 2000, 4, dtype=torch.int32)

    def forward(t: Tensor) -> Tensor:
        to = t.new_empty(argmax.shape)
        projects.mmcv().border_align_forward(t, rois, to, argmax, 10)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        projects.mmcv().border_align_backward(grad, rois, argmax, to, 10)
        return [to]

    return of("border_align", [x, rois], pool_size=10).against_mmcv(forward, backward)


cases.growth("boxes", 1000, MILLION)(
    lambda n: call("border_align", image_of_rois(), rois_over(n)[None, :, 1:].contiguous(), pool_size=10)
)
cases.small([(2, 8, 5, 6), (2, 3, 4)], pool_size=3)
