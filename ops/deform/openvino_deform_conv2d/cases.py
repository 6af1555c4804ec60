# SPDX-License-Identifier: Apache-2.0

from benchmark import Call, Cases, of
from inputs import PIXELS

from ops.deform.cases import deformed, tensors_of

cases = Cases(__file__)


@cases.gradient("openvino_deform_conv2d 2x128x64x64, 3x3")
def _() -> Call:
    x, offset, _, weight, _ = tensors_of(128)
    return of("openvino_deform_conv2d", [x, offset, weight], (0, 1, 2), pads=[1, 1, 1, 1])


cases.growth("pixels", 128 * 128, PIXELS)(lambda n: deformed("openvino_deform_conv2d", n, pads=[1, 1, 1, 1]))
cases.small([(2, 4, 5, 6), (2, 12, 2, 7), (2, 4, 3, 2)], strides=[2, 1], pads=[1, 0, 0, 2])
