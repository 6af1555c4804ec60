# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Call, Cases, Contest, call, of
from contenders import bytes_of, session, with_torch
from inputs import POINTS, street, streets
from torch import Tensor

cases = Cases(__file__)


@cases.cpu("2 x 4,096 points twice, 2-D")
def _(threads: int) -> Contest:
    a, b = (np.random.default_rng(n).random((2, 4096, 2)).astype(np.float32) * 100 for n in (41, 42))
    ours = session("polyop::ChamferDistance", {"xyz1": a, "xyz2": b}, threads, ["dist1", "dist2", "idx1", "idx2"])
    first, second = torch.from_numpy(a), torch.from_numpy(b)

    def nearest(own: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = [((rows[:, :, None] - other[:, None]) ** 2).sum(-1).min(-1) for rows in own.split((1 << 22) // 4096, 1)]
        return torch.cat([f.values for f in found], 1), torch.cat([f.indices for f in found], 1)

    def formulation() -> list[torch.Tensor]:
        (dist1, idx1), (dist2, idx2) = nearest(first, second), nearest(second, first)
        return [dist1, dist2, idx1, idx2]

    return Contest(
        ours,
        {"torch formulation": with_torch(formulation)},
        bytes_of(a, b) * 2,
        same=lambda a, b: all(np.allclose(a[i], b[i], atol=1e-4) for i in (0, 1)),
    )


cases.growth("points of both clouds", 1000, POINTS)(
    lambda n: call("chamfer_distance", streets(n), (street(n).flip(0) + 0.01)[None])
)


@cases.gradient("chamfer_distance 4x2,048 points")
def _() -> Call:
    tensors: list[Tensor | None] = [torch.randn(4, 2048, 3), torch.randn(4, 2048, 3)]
    return of("chamfer_distance", tensors, (0, 1))


cases.small([(2, 5, 2), (2, 4, 2)])
