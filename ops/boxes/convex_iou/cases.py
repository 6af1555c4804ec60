# SPDX-License-Identifier: Apache-2.0

from benchmark import Cases, call

from ops.boxes.cases import quadrilaterals, sets

cases = Cases(__file__)

cases.growth("sets, as many quadrilaterals", 100, 20_000)(lambda n: call("convex_iou", sets(n), quadrilaterals(n)))
