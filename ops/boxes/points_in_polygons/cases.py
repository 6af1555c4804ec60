# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest, call
from contenders import bytes_of, session, with_torch
from inputs import MILLION, uniform

from ops.boxes.cases import quadrilaterals
from polyop import formulas

cases = Cases(__file__)


@cases.cpu("20,000 points, 64 quadrilaterals")
def _(threads: int) -> Contest:
    rng = np.random.default_rng(39)
    points = rng.uniform(0, 1024, (20000, 2)).astype(np.float32)
    middle, reach = rng.uniform(0, 1024, (64, 1, 2)), rng.uniform(10, 200, (64, 1, 1))
    turn = rng.uniform(0, 7, (64, 1)) + np.arange(4) * np.pi / 2
    polygons = middle + reach * np.stack([np.cos(turn), np.sin(turn)], -1)
    polygons = polygons.reshape(64, 8).astype(np.float32)
    ours = session("polyop::PointsInPolygons", {"points": points, "polygons": polygons}, threads)
    formula = formulas.find("points_in_polygons").formula
    tensors = torch.from_numpy(points), torch.from_numpy(polygons)
    return Contest(
        ours, {"torch formulation": with_torch(lambda: formula(*tensors))}, bytes_of(points, polygons) + 20000 * 64 * 4
    )


cases.growth("points, 64 quadrilaterals", 1000, 10 * MILLION)(
    lambda n: call("points_in_polygons", uniform(n, 2, high=32 * n**0.5), quadrilaterals(64))
)
