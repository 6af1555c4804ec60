# SPDX-License-Identifier: Apache-2.0
import projects
import torch
from benchmark import F32, Call, Cases, Contest, call, of
from contenders import in_torch, normal, session
from inputs import gaussian, side_of
from torch import Tensor

cases = Cases(__file__)


@cases.cpu("{}, 59x59 of 30x30", over=["collect", "distribute"])
def _(threads: int, kind: str) -> Contest:
    x = normal(0, 1, 59 * 59, 30, 30)
    attributes = {"psa_type": int(kind == "distribute"), "mask_size": [59, 59]}
    ours = session("mmcv::MMCVPSAMask", {"x": x}, threads, attributes=attributes)
    theirs = in_torch("psa_mask", x, psa_type=kind, mask_size=[59, 59])
    return Contest(ours, {"torch formulation": theirs}, 2 * 4 * 900.0 * 900, tolerance=0)


@cases.gradient("psa_mask 2x59x59x30x30")
@cases.differentiable("2x3,481x30x30, 59x59, collect")
def _(dtype: torch.dtype = F32) -> Call:
    sizes = [0, 2, 30, 30, 59, 59, 29, 29]

    def forward(t: Tensor) -> Tensor:
        to = t.new_zeros(2, 900, 30, 30)
        projects.mmcv().psamask_forward(t, to, *sizes)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        projects.mmcv().psamask_backward(grad, to, *sizes)
        return [to]

    call = of("psa_mask", [torch.randn(2, 59 * 59, 30, 30)], mask_size=[59, 59])
    return call.against_mmcv(forward, backward, on_cpu=True)


@cases.growth("pixels, a mask of all", 100, 10_000)
def _(n: int) -> Call:
    side = side_of(n)
    return call("psa_mask", gaussian(1, (2 * side - 1) ** 2, side, side), mask_size=[2 * side - 1, 2 * side - 1])


cases.small([(2, 15, 3, 4)], mask_size=[3, 5])
