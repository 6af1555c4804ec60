# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import Cases, Contest, call, mmcv_rival
from contenders import bytes_of, session, with_torch
from torch import Tensor

from ops.boxes.cases import rotated, scattered_rotated
from ops.boxes3d.cases import areas_shared, cars

cases = Cases(__file__)


@cases.cpu("2,000 x 100 boxes")
def _(threads: int) -> Contest:
    a, b = (np.ascontiguousarray(cars(n, 70, seed)[:, [0, 1, 3, 4, 6]]) for n, seed in ((2000, 37), (100, 38)))
    ours = session("polyop::BoxIoURotated", {"a": a, "b": b}, threads)
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    area_a, area_b = (t[:, 2] * t[:, 3] for t in (ta, tb))

    def formulation() -> torch.Tensor:
        shared = torch.stack([areas_shared(box, ta) for box in tb], 1)
        return shared / (area_a[:, None] + area_b - shared)

    return Contest(
        ours, {"torch formulation": with_torch(formulation)}, bytes_of(a, b) + 2000 * 100 * 4, tolerance=1e-3
    )


@cases.gpu("2,000 x 2,000 boxes")
def _() -> Contest:
    a, b = scattered_rotated(2000, 400.0), scattered_rotated(2000, 400.0)

    def mmcv() -> Tensor:
        to = a.new_zeros(2000 * 2000)
        projects.mmcv().box_iou_rotated(a, b, to, 0, False)
        return to.view(2000, 2000)

    return Contest(lambda: torch.ops.polyop.box_iou_rotated(a, b), reads=[a, b], rivals=mmcv_rival(mmcv))


cases.growth("boxes of both sets", 100, 20_000)(lambda n: call("box_iou_rotated", rotated(n), rotated(n)))
