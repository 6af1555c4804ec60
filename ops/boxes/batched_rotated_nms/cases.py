# SPDX-License-Identifier: Apache-2.0

from benchmark import Cases
from inputs import MILLION

from ops.boxes.cases import of_class, rotated

cases = Cases(__file__)

cases.growth("spread boxes", 1000, MILLION)(lambda n: of_class("batched_rotated_nms", rotated(n)))
