# SPDX-License-Identifier: Apache-2.0
import projects
import torch
from benchmark import F32, Call, Cases, call, of
from inputs import gaussian
from torch import Tensor

cases = Cases(__file__)


@cases.differentiable("256x256x8x3x3, 8 rotations")
def rotated(dtype: torch.dtype, outputs: int = 256, inputs: int = 256) -> Call:
    indices = torch.stack([torch.randperm(72) for _ in range(8)], 1).reshape(8, 3, 3, 8).int() + 1

    def forward(t: Tensor) -> Tensor:
        to = t.new_empty(outputs * 8, inputs * 8, 3, 3)
        projects.mmcv().active_rotated_filter_forward(t, indices, to)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        projects.mmcv().active_rotated_filter_backward(grad, indices, to)
        return [to]

    call = of("active_rotated_filter", [torch.randn(outputs, inputs, 8, 3, 3), indices])
    return call.against_mmcv(forward, backward, on_cpu=True)


cases.gradient("active_rotated_filter 64x32x8x3x3, 8 rotations")(lambda: rotated(F32, 64, 32))


@cases.growth("filters of 16 channels", 100, 100_000)
def _(n: int) -> Call:
    """Filters of 3x3 for 8 orientations, with 8 rotations; each entry of a filter moves to another one."""
    locations = torch.stack([torch.randperm(72, generator=torch.Generator().manual_seed(i)) for i in range(8)], 1)
    return call("active_rotated_filter", gaussian(n, 16, 8, 3, 3), locations.view(8, 3, 3, 8) + 1)


cases.small([(2, 3, 2, 3, 1), lambda: torch.randint(1, 7, (2, 3, 1, 4))])
