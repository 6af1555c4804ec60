# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import F16, F32, Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import MILLION, gaussian
from torch import Tensor

cases = Cases(__file__)


@cases.cpu("12,000 pillars, 64 channels, 496x432")
def _(threads: int) -> Contest:
    features = normal(11, 12_000, 64)
    cell = np.random.default_rng(12).permutation(496 * 432)[:12_000].astype(np.int32)
    coords = np.stack([cell * 0, cell * 0, cell // 432, cell % 432], 1).astype(np.int32)
    feeds = {"features": features, "coords": coords}
    ours = session("polyop::PillarScatter", feeds, threads, attributes={"dense_shape": [496, 432]})
    tf, tc = torch.from_numpy(features), torch.from_numpy(cell).long()

    def formulation() -> torch.Tensor:
        canvas = torch.zeros(64, 496 * 432)
        canvas[:, tc] = tf.T
        return canvas.view(1, 64, 496, 432)

    moved = bytes_of(features) + 64 * 496 * 432 * 4
    return Contest(ours, {"torch index_put": with_torch(formulation)}, moved)


@cases.gradient("pillar_scatter 12,000x64 to 496x432")
@cases.differentiable("12,000x64 to 496x432", F32, F16)
def _(dtype: torch.dtype = F32) -> Call:
    positions = torch.randperm(496 * 432)[:12_000]
    coors = torch.stack([positions * 0, positions * 0, positions // 432, positions % 432], 1)

    def composed(t: Tensor) -> Tensor:
        return t.new_zeros(64, 496 * 432).index_copy(1, positions, t.t()).view(1, 64, 496, 432)

    tensors = [torch.randn(12_000, 64).to(dtype), coors, None]
    call = of("pillar_scatter", tensors, dense_shape=[496, 432], batch_size=1)
    return call.beside(composed)


@cases.growth("pillars", 1000, MILLION)
def _(n: int) -> Call:
    side = max(1, round((4 * n) ** 0.5))
    cell = torch.randperm(side * side, generator=torch.Generator().manual_seed(6))[:n].int()
    coords = torch.stack([cell * 0, cell * 0, cell // side, cell % side], 1)
    return call("pillar_scatter", gaussian(n, 16), coords, None, dense_shape=[side, side])


cases.small([(2, 3, 4), lambda: torch.zeros(2, 3, 4, dtype=torch.int64), torch.tensor([2, 3])], dense_shape=[2, 3])
