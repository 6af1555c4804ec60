# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest, call
from contenders import bytes_of, normal, session, with_torch
from inputs import POINTS, gaussian, streets

from ops.boxes3d.cases import cars, cars_over, inside, points_near

cases = Cases(__file__)


@cases.cpu("16,384 points, 128 channels, 128 boxes, 512 samples")
def _(threads: int) -> Contest:
    boxes = cars(128, 70)
    points, features = points_near(boxes, 16384), normal(38, 16384, 128)
    feeds = {"points": points[None], "features": features[None], "boxes": boxes[None]}
    ours = session("polyop::RoIPointPool3d", feeds, threads, ["pooled", "empty"])
    tp, tb = torch.from_numpy(points), torch.from_numpy(boxes)
    both = torch.cat([tp, torch.from_numpy(features)], 1)

    def formulation() -> torch.Tensor:
        holds, _ = inside(tp, tb)
        number = holds.sum(1)
        first = torch.where(holds, torch.arange(16384), 16384).topk(512, largest=False, sorted=True).values
        rank = torch.arange(512) % number.clamp(1, 512)[:, None]
        rows = both[first.gather(1, rank).clamp(max=16383)]
        return torch.where((number > 0)[:, None, None], rows, 0)[None]

    moved = bytes_of(points, features) + 128 * 512 * 131 * 4
    return Contest(
        ours, {"torch formulation": with_torch(formulation)}, moved, same=lambda a, b: np.mean(a[0] != b[0]) < 1e-3
    )


cases.growth("points, 64 boxes", 1000, POINTS)(
    lambda n: call("roipoint_pool3d", streets(n), gaussian(1, n, 4), cars_over(64)[None])
)
