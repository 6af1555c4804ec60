# SPDX-License-Identifier: Apache-2.0

from benchmark import Call, Cases, call, of
from inputs import PIXELS, gaussian, image

from ops.deform.cases import in_torchvision, offsets, tensors_of

cases = Cases(__file__)


@cases.gradient("onnx_deform_conv 2x128x64x64, 3x3")
def _() -> Call:
    x, offset, mask, weight, bias = tensors_of(128)
    call = of("onnx_deform_conv", [x, weight, offset, bias, mask], (0, 1, 2, 3, 4), pads=[1, 1, 1, 1])
    return call.against_torchvision(lambda x, w, o, b, m: in_torchvision(x, o, w, m, b))


@cases.growth("pixels", 128 * 128, PIXELS)
def _(n: int) -> Call:
    inputs = [image(n, 8), gaussian(8, 8, 3, 3), offsets(n), None, None]
    return call("onnx_deform_conv", *inputs, pads=[1, 1, 1, 1])


cases.small([(2, 4, 5, 6), (2, 4, 3, 2), (2, 12, 2, 7), (2,), (2, 6, 2, 7)], strides=[2, 1], pads=[1, 0, 0, 2])
