# SPDX-License-Identifier: Apache-2.0

from benchmark import Cases, call
from inputs import POINTS, streets

from ops.boxes3d.cases import cars_over, in_boxes

cases = Cases(__file__)

cases.gpu("4x20,000 points, 64 boxes")(lambda: in_boxes(True))
cases.growth("points, 64 boxes", 1000, POINTS)(lambda n: call("points_in_boxes_all", streets(n), cars_over(64)[None]))
