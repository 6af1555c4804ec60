# SPDX-License-Identifier: Apache-2.0

from benchmark import Cases, call

from ops.boxes.cases import quadrilaterals

cases = Cases(__file__)

cases.growth("boxes of both sets", 100, 20_000)(lambda n: call("box_iou_quadri", quadrilaterals(n), quadrilaterals(n)))
