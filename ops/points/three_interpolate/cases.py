# SPDX-License-Identifier: Apache-2.0
import numpy as np
import projects
import torch
from benchmark import Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import POINTS, gaussian, integers, uniform
from torch import Tensor

import polyop.functional as ops

cases = Cases(__file__)


@cases.cpu("128 channels, 4,096 to 16,384 points")
def _(threads: int) -> Contest:
    features, weight = normal(18, 1, 128, 4096), np.random.default_rng(19).random((1, 16384, 3)).astype(np.float32)
    index = np.random.default_rng(20).integers(0, 4096, (1, 16384, 3)).astype(np.int32)
    ours = session("polyop::ThreeInterpolate", {"features": features, "idx": index, "weight": weight}, threads)
    tf, tw = torch.from_numpy(features), torch.from_numpy(weight)
    ti = torch.from_numpy(index.astype(np.int64)).flatten(1)[:, None].expand(-1, 128, -1)
    theirs = with_torch(lambda: (tf.gather(2, ti).view(1, 128, 16384, 3) * tw[:, None]).sum(-1))
    return Contest(ours, {"torch gather + sum": theirs}, bytes_of(features, weight, index) + 128 * 16384 * 4)


@cases.differentiable("8x256, 1,024 to 4,096 points")
def _(dtype: torch.dtype) -> Call:
    weight, indices = torch.rand(8, 4096, 3).softmax(2), torch.randint(1024, (8, 4096, 3)).int()

    def forward(t: Tensor) -> Tensor:
        to = t.new_empty(8, 256, 4096)
        projects.mmcv().three_interpolate_forward(t, indices, weight, to, 8, 256, 1024, 4096)
        return to

    def backward(grad: Tensor, t: Tensor) -> list[Tensor]:
        to = torch.zeros_like(t)
        projects.mmcv().three_interpolate_backward(grad, indices, weight, to, 8, 256, 4096, 1024)
        return [to]

    call = Call(lambda t: ops.three_interpolate(t, indices, weight), [torch.randn(8, 256, 1024)])
    call.also_reads = [indices, weight]
    return call.against_mmcv(forward, backward)


cases.growth("points", 1000, POINTS)(
    lambda n: call("three_interpolate", gaussian(1, 16, n // 4), integers(n // 4, 1, n, 3), uniform(1, n, 3))
)


@cases.gradient("three_interpolate 8x256, 1,024 to 4,096 points")
def _() -> Call:
    weight = torch.rand(8, 4096, 3).softmax(2)
    indices = torch.randint(1024, (8, 4096, 3))
    return of("three_interpolate", [torch.randn(8, 256, 1024), indices, weight], (0, 2))


cases.small([(2, 3, 5), lambda: torch.randint(0, 5, (2, 4, 3)), (2, 4, 3)])
