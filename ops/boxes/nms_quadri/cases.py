# SPDX-License-Identifier: Apache-2.0

from benchmark import Cases, call
from inputs import MILLION, scores

from ops.boxes.cases import quadrilaterals

cases = Cases(__file__)

cases.growth("spread boxes", 1000, MILLION)(lambda n: call("nms_quadri", quadrilaterals(n), scores(n)))
