# SPDX-License-Identifier: Apache-2.0
import projects
import torch
from benchmark import F16, F32, Call, Cases
from inputs import PIXELS
from torch import Tensor

import polyop.functional as ops
from ops.deform.cases import SQUARE, deform_conv, deformed, flops_of, in_torchvision, tensors_of

cases = Cases(__file__)

cases.cpu("256x64x64, 256 filters 3x3")(lambda threads: deform_conv(threads, modulated=False))


@cases.differentiable("2x256x64x64, 3x3", F32, F16)
def convolved(dtype: torch.dtype, channels: int = 256) -> Call:
    x, offset, _, weight, bias = tensors_of(channels, dtype)
    call = Call(lambda *t: ops.deform_conv2d(*t, padding=1), [x, offset, weight], flops=flops_of(channels))
    call.against_torchvision(lambda x, o, w: in_torchvision(x, o, w, None, bias))
    step = 2 if projects.on_gpu() else 1  # images that MMCV computes together

    def forward(x: Tensor, offset: Tensor, weight: Tensor) -> Tensor:
        to, buffers = x.new_empty(x.shape), [x.new_empty(0), x.new_empty(0)]
        projects.mmcv().deform_conv_forward(x, weight, offset, to, *buffers, *SQUARE, 1, 1, step)
        return to

    def backward(grad: Tensor, x: Tensor, offset: Tensor, weight: Tensor) -> list[Tensor]:
        to, buffers = [torch.zeros_like(t) for t in (x, offset, weight)], [x.new_empty(0), x.new_empty(0)]
        library = projects.mmcv()
        library.deform_conv_backward_input(x, offset, grad, to[0], to[1], weight, buffers[0], *SQUARE, 1, 1, step)
        library.deform_conv_backward_parameters(x, offset, grad, to[2], *buffers, *SQUARE, 1, 1, 1.0, step)
        return to

    return call.against_mmcv(forward, backward, on_cpu=True)


cases.gradient("deform_conv2d 2x128x64x64, 3x3")(lambda: convolved(F32, 128))


@cases.gradient("deform_conv2d 1x256x64x64, 3x3, depthwise")
def _() -> Call:
    inputs = [torch.randn(1, 256, 64, 64), torch.randn(1, 18, 64, 64), torch.randn(256, 1, 3, 3)]
    return Call(lambda *t: ops.deform_conv2d(*t, padding=1, groups=256), inputs)


cases.growth("pixels", 128 * 128, PIXELS)(lambda n: deformed("deform_conv2d", n, padding=[1, 1]))
cases.small([(2, 4, 5, 6), (2, 12, 2, 5), (2, 4, 3, 2)], stride=[2, 1])
cases.small([(2, 4, 5, 6), (2, 12, 2, 3), (2, 4, 3, 2)], "one-value", stride=[2])
