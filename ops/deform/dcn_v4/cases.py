# SPDX-License-Identifier: Apache-2.0
import projects
import torch
from benchmark import F16, F32, Call, Cases, of
from inputs import PIXELS
from torch import Tensor

from ops.deform.cases import dcn, last_channels

cases = Cases(__file__)

cases.cpu("28x28, 16 groups x 32, 3x3")(lambda threads: dcn(threads, 4))


@cases.differentiable("4x56x56, 8 groups of 32, 3x3", F32, F16)
def convolved(dtype: torch.dtype, images: int = 4, side: int = 56, channels: int = 32) -> Call:
    """Eight groups."""
    inputs = [torch.randn(images, side, side, n).to(dtype) for n in (8 * channels, 8 * 27)]
    window, pixels = [3, 3, 1, 1, 1, 1, 1, 1, 8, channels, 1.0], images * side * side

    def forward(x: Tensor, offsets: Tensor) -> Tensor:
        threads = projects.dcnv4_threads(pixels, channels, 512)
        return projects.dcnv4().dcnv4_forward(x, offsets, *window, 256, 0, 8, threads, False)

    def backward(grad: Tensor, x: Tensor, offsets: Tensor) -> list[Tensor]:
        threads = projects.dcnv4_threads(pixels, 8 * channels, 256)
        return projects.dcnv4().dcnv4_backward(x, offsets, *window, 256, grad, 0, 1, threads, False)

    call = of("dcn_v4", inputs, (0, 1), group=8, group_channels=channels, pad_h=1, pad_w=1)
    return call.against_dcnv4(forward, backward)


cases.gradient("dcn_v4 1x64x64x128, 8 groups, 3x3")(lambda: convolved(F32, 1, 64, 16))
cases.growth("pixels", 128 * 128, PIXELS)(lambda n: last_channels("dcn_v4", n))
cases.small([(1, 4, 5, 6), (1, 4, 5, 56)], group=2, group_channels=3)
