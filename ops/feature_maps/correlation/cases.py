# SPDX-License-Identifier: Apache-2.0
import projects
import torch
import torch.nn.functional as F
from benchmark import F32, Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import PIXELS, image
from torch import Tensor

cases = Cases(__file__)


@cases.cpu("256x48x64, 441 displacements")
def _(threads: int) -> Contest:
    """FlowNet's correlation: 441 displacements of up to 20 pixels."""
    a, b = normal(0, 1, 256, 48, 64), normal(1, 1, 256, 48, 64)
    ours = session(
        "polyop::Correlation", {"a": a, "b": b}, threads, attributes={"max_displacement": 10, "dilation_patch": [2, 2]}
    )
    first, around = torch.from_numpy(a), F.pad(torch.from_numpy(b), (20, 20, 20, 20))

    def formulation() -> torch.Tensor:
        steps = range(0, 41, 2)
        rows = [(first * around[:, :, y : y + 48, x : x + 64]).sum(1) for y in steps for x in steps]
        return torch.stack(rows, 1).view(1, 21, 21, 48, 64)

    return Contest(ours, {"torch formulation": with_torch(formulation)}, bytes_of(a, b) + 441 * 48 * 64 * 4,
                   2.0 * 441 * 256 * 48 * 64, tolerance=2e-3)  # fmt: skip


@cases.differentiable("2x128x48x64, displacements of 4")
def correlated(dtype: torch.dtype, images: int = 2, channels: int = 128) -> Call:
    window = [1, 1, 9, 9, 0, 0, 1, 1, 1, 1, 1, 1]  # kernel, patch, padding, dilation, patch's dilation, stride

    def forward(a: Tensor, b: Tensor) -> Tensor:
        to = a.new_zeros(images, 9, 9, 48, 64)
        projects.mmcv().correlation_forward(a, b, to, *window)
        return to

    def backward(grad: Tensor, a: Tensor, b: Tensor) -> list[Tensor]:
        to = [torch.zeros_like(a), torch.zeros_like(b)]
        projects.mmcv().correlation_backward(grad, a, b, *to, *window)
        return to

    inputs = [torch.randn(images, channels, 48, 64) for _ in range(2)]
    return of("correlation", inputs, (0, 1), max_displacement=4).against_mmcv(forward, backward)


cases.gradient("correlation 64x48x64, displacements of 4")(lambda: correlated(F32, 1, 64))
cases.growth("pixels", 128 * 128, PIXELS)(lambda n: call("correlation", image(n, 8), image(n, 8), max_displacement=4))
cases.small([(2, 3, 4, 5), (2, 3, 4, 5)], kernel_size=[3], padding=[1, 0])
