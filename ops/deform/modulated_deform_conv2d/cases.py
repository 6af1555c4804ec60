# SPDX-License-Identifier: Apache-2.0
import projects
import torch
from benchmark import F16, F32, Call, Cases
from inputs import PIXELS
from torch import Tensor

import polyop.functional as ops
from ops.deform.cases import SQUARE, deform_conv, deformed, flops_of, in_torchvision, tensors_of

cases = Cases(__file__)

cases.cpu("256x64x64, 256 filters 3x3")(lambda threads: deform_conv(threads, modulated=True))
cases.in_half("256x64x64, 256 filters 3x3")


@cases.differentiable("2x256x64x64, 3x3", F32, F16)
def convolved(dtype: torch.dtype, channels: int = 256) -> Call:
    def forward(x: Tensor, offset: Tensor, mask: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        to, buffers = x.new_empty(x.shape), [x.new_empty(0), x.new_empty(0)]
        projects.mmcv().modulated_deform_conv_forward(
            x, weight, bias, buffers[0], offset, mask, to, buffers[1], *SQUARE, 1, 1, True
        )
        return to

    def backward(grad: Tensor, x: Tensor, offset: Tensor, mask: Tensor, weight: Tensor, bias: Tensor) -> list[Tensor]:
        to, buffers = [torch.zeros_like(t) for t in (x, offset, mask, weight, bias)], [x.new_empty(0), x.new_empty(0)]
        of_x, of_offset, of_mask, of_weight, of_bias = to
        projects.mmcv().modulated_deform_conv_backward(
            x, weight, bias, buffers[0], offset, mask, buffers[1], of_x, of_weight, of_bias, of_offset, of_mask, grad,
            *SQUARE, 1, 1, True,
        )  # fmt: skip
        return to

    inputs = tensors_of(channels, dtype)
    call = Call(lambda *t: ops.modulated_deform_conv2d(*t, padding=1), inputs, flops=flops_of(channels))
    call.against_torchvision(lambda x, o, m, w, b: in_torchvision(x, o, w, m, b))
    return call.against_mmcv(forward, backward, on_cpu=True)


cases.gradient("modulated_deform_conv2d 2x128x64x64, 3x3")(lambda: convolved(F32, 128))
cases.growth("pixels", 128 * 128, PIXELS)(lambda n: deformed("modulated_deform_conv2d", n, padding=[1, 1]))
cases.small([(1, 4, 3, 3), (1, 8, 2, 2), (1, 4, 2, 2), (2, 4, 2, 2), (2,)])
