# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Cases, Contest, call
from contenders import bytes_of, normal, session, with_torch
from inputs import MILLION

from ops.boxes.cases import sets
from polyop import formulas

cases = Cases(__file__)


@cases.cpu("20,000 sets of 9 points")
def _(threads: int) -> Contest:
    sets = normal(40, 20000, 18)
    ours = session("polyop::MinAreaPolygons", {"pointsets": sets}, threads)
    formula, tensor = formulas.find("min_area_polygons").formula, torch.from_numpy(sets)
    return Contest(ours, {"torch formulation": with_torch(lambda: formula(tensor))}, bytes_of(sets) + 20000 * 8 * 4)


cases.growth("sets", 1000, MILLION)(lambda n: call("min_area_polygons", sets(n)))
