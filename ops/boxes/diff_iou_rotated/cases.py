# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import MILLION

from ops.boxes.cases import rotated
from ops.boxes3d.cases import cars
from polyop import formulas

cases = Cases(__file__)


@cases.cpu("20,000 pairs of 3-D boxes")
def _(threads: int) -> Contest:
    a = cars(20000, 70, 41)
    b = a + normal(42, 20000, 7) * np.float32([0.5, 0.5, 0.2, 0.1, 0.1, 0.1, 0.2])
    feeds = {"boxes_a": a[None], "boxes_b": b[None]}
    ours = session("polyop::DiffIoURotated", feeds, threads, attributes={"dimensions": 3})
    formula = formulas.find("diff_iou_rotated").formula
    tensors = [torch.from_numpy(t) for t in feeds.values()]
    return Contest(
        ours,
        {"torch formulation": with_torch(lambda: formula(*tensors, dimensions=3))},
        bytes_of(a, b) + 20000 * 4,
        tolerance=1e-3,
    )


cases.growth("pairs of boxes", 1000, MILLION)(lambda n: call("diff_iou_rotated", rotated(n)[None], rotated(n)[None]))


@cases.gradient("diff_iou_rotated 20,000 pairs of 3-D boxes")
def _() -> Call:
    a = torch.cat([torch.rand(20_000, 3) * 70, torch.rand(20_000, 3) * 3 + 1, torch.rand(20_000, 1) * 6], 1)
    b = a + torch.randn(20_000, 7) * 0.2
    call = of("diff_iou_rotated", [a[None], b[None]], (0, 1), dimensions=3)
    composed = projects.mmcv_diff_iou_rotated()
    if composed is not None:
        call.functions["MMCV"] = composed.diff_iou_rotated_3d
    return call


cases.small([lambda: torch.rand(2, 6, 5) + 0.5, lambda: torch.rand(2, 6, 5) + 0.5])
cases.small([lambda: torch.rand(2, 6, 7) + 0.5, lambda: torch.rand(2, 6, 7) + 0.5], "3d", dimensions=3)
