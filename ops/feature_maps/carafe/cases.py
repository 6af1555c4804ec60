# SPDX-License-Identifier: Apache-2.0
import projects
import torch
import torch.nn.functional as F
from benchmark import F16, F32, Call, Cases, Contest, call
from contenders import bytes_of, normal, session, with_torch
from inputs import PIXELS, image, side_of, uniform
from torch import Tensor

import polyop.functional as ops

cases = Cases(__file__)


@cases.cpu("x2 of 256x50x76, k 5")
def _(threads: int) -> Contest:
    x = normal(0, 1, 256, 50, 76)
    masks = torch.randn(1, 25, 100, 152, generator=torch.Generator().manual_seed(1)).softmax(1).numpy()
    ours = session(
        "mmcv::MMCVCARAFE",
        {"x": x, "m": masks},
        threads,
        attributes={"kernel_size": 5, "group_size": 1, "scale_factor": 2.0},
    )
    tx, tm = torch.from_numpy(x), torch.from_numpy(masks)

    def formulation() -> torch.Tensor:
        windows = F.unfold(tx, 5, padding=2).view(1, 256, 25, 50, 1, 76, 1)
        return (windows * tm.view(1, 1, 25, 50, 2, 76, 2)).sum(2).view(1, 256, 100, 152)

    def at_once() -> torch.Tensor:
        windows = F.unfold(tx, 5, padding=2).view(256, 25, 50, 76)
        return torch.einsum("ckhw,khiwj->chiwj", windows, tm.view(25, 50, 2, 76, 2)).reshape(1, 256, 100, 152)

    rivals = {"torch formulation": with_torch(formulation), "torch einsum": with_torch(at_once)}
    return Contest(ours, rivals, 5 * bytes_of(x) + bytes_of(masks))


@cases.differentiable("256x50x76, 5, x2", F32, F16)
def upsampled(dtype: torch.dtype, channels: int = 256) -> Call:
    features, masks = torch.randn(1, channels, 50, 76).to(dtype), torch.randn(1, 25, 100, 152).softmax(1).to(dtype)
    blocked = torch.zeros_like(features)

    def forward(t: Tensor, m: Tensor) -> Tensor:
        to = t.new_zeros(1, channels, 100, 152)
        projects.mmcv().carafe_forward(t, m, blocked, torch.zeros_like(to), torch.zeros_like(m), to, 5, 1, 2)
        return to

    def backward(grad: Tensor, t: Tensor, m: Tensor) -> list[Tensor]:
        like = [torch.zeros_like(of) for of in (grad, grad, t, m, t, m)]
        projects.mmcv().carafe_backward(grad, blocked, m, *like, 5, 1, 2)
        return like[4:]

    return Call(lambda t, m: ops.carafe(t, m, 5, 1, 2), [features, masks]).against_mmcv(forward, backward)


cases.gradient("carafe 64x50x76, 5, x2")(lambda: upsampled(F32, 64))


@cases.growth("pixels", 128 * 128, PIXELS)
def _(n: int) -> Call:
    side = side_of(n)
    return call("carafe", image(n), uniform(1, 25, 2 * side, 2 * side), kernel_size=5, scale_factor=2.0)


cases.small([(1, 4, 2, 3), (1, 9, 4, 6)], kernel_size=3, scale_factor=2.0)
