# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence

import numpy as np
import projects
import torch
from benchmark import F16, F32, Call, Cases, Contest
from contenders import bytes_of, normal, session, with_torch
from inputs import MILLION
from torch import Tensor

from ops.deform.cases import LARGE, SMALL, attend_by_grids, attention, levels_of

cases = Cases(__file__)


@cases.cpu("4 levels, 8 heads x 32, 900 queries")
def _(threads: int) -> Contest:
    shapes = np.array([[100, 100], [50, 50], [25, 25], [13, 13]], np.int64)
    starts = np.concatenate([[0], np.cumsum(shapes.prod(1))[:-1]]).astype(np.int64)
    value = normal(0, 1, int(shapes.prod(1).sum()), 8, 32)
    locations = np.random.default_rng(7).uniform(0, 1, (1, 900, 8, 32)).astype(np.float32)
    rows = np.concatenate([locations, normal(8, 1, 900, 8, 16)], -1)
    ours = session(
        "polyop::FlashDeformAttn",
        {"value": value, "shapes": shapes, "starts": starts, "rows": rows},
        threads,
        attributes={"points": 4},
    )
    tv, tr = torch.from_numpy(value), torch.from_numpy(rows)

    def formulation() -> torch.Tensor:
        weights = tr[..., 32:].softmax(-1).view(1, 900, 8, 4, 4)
        summed = attend_by_grids(tv, shapes, tr[..., :32].reshape(1, 900, 8, 4, 4, 2), weights)
        return summed.transpose(1, 2).reshape(1, 900, 256)

    return Contest(
        ours, {"torch formulation": with_torch(formulation)}, bytes_of(value, rows) + 900 * 1024, tolerance=1e-3
    )


ALL = levels_of(*LARGE)[2]


def flash(queries: int, dtype: torch.dtype = F32, sizes: Sequence[tuple[int, int]] = LARGE, points: int = 8) -> Call:
    """Eight heads of 32 channels."""
    shapes, starts, pixels = levels_of(*sizes)
    locations, logits = torch.rand(1, queries, 8, 2 * 4 * points), torch.randn(1, queries, 8, 4 * points)
    inputs = [torch.randn(1, pixels, 8, 32).to(dtype), torch.cat([locations, logits], -1).to(dtype)]

    def forward(value: Tensor, rows: Tensor) -> Tensor:
        threads = projects.dcnv4_threads(queries, 32, 512)
        return projects.dcnv4().flash_deform_attn_forward(value, shapes, starts, rows, 64, points, 8, threads)

    def backward(grad: Tensor, value: Tensor, rows: Tensor) -> list[Tensor]:
        threads = projects.dcnv4_threads(queries, 256, 256)
        return projects.dcnv4().flash_deform_attn_backward(value, shapes, starts, rows, grad, 64, points, 1, threads)

    call = Call(lambda v, p: torch.ops.polyop.flash_deform_attn(v, shapes, starts, p, points=points), inputs)
    return call.against_dcnv4(forward, backward)


cases.differentiable("4 levels of 8 points, 900 queries", F32, F16)(lambda dtype: flash(900, dtype))
cases.differentiable("4 levels of 8 points, all pixels as queries", F32, F16)(lambda dtype: flash(ALL, dtype))
cases.gradient("flash_deform_attn, 4 levels of 4 points, 2,000 queries")(lambda: flash(2000, F32, SMALL, 4))
cases.growth("queries and pixels", 1000, MILLION)(lambda n: attention("flash_deform_attn", n))
cases.small([(2, 26, 2, 3), torch.tensor([[4, 5], [2, 3]]), torch.tensor([0, 20]), (2, 3, 2, 12)], points=2)
