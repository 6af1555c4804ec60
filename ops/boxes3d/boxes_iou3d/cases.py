# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest, call
from contenders import bytes_of, session, with_torch

from ops.boxes3d.cases import areas_shared, cars, cars_over

cases = Cases(__file__)


@cases.cpu("1,000 x 500 boxes seen from above")
def _(threads: int) -> Contest:
    a, b = cars(1000, 70, 35), cars(500, 70, 36)
    ours = session("polyop::BoxesIoU3D", {"a": a, "b": b}, threads, attributes={"mode": 1})
    ta, tb = (torch.from_numpy(np.ascontiguousarray(t[:, [0, 1, 3, 4, 6]])) for t in (a, b))
    theirs = with_torch(lambda: torch.stack([areas_shared(box, tb) for box in ta]))
    return Contest(ours, {"torch formulation": theirs}, bytes_of(a, b) + 1000 * 500 * 4, tolerance=1e-3)


cases.growth("boxes of both sets", 100, 20_000)(lambda n: call("boxes_iou3d", cars_over(n), cars_over(n)))
