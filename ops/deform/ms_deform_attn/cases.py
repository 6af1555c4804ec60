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


@cases.cpu("4 levels, 8 heads x 32, {} queries{}", over=[(900, ""), ("all", ""), ("all", ", samples near")])
def _(threads: int, queries: int | str, near: str) -> Contest:
    """`near`: every pixel is a query whose samples lie a few pixels around it, as in an encoder; otherwise samples lie
    anywhere.
    """
    shapes = np.array([[100, 100], [50, 50], [25, 25], [13, 13]], np.int64)
    starts = np.concatenate([[0], np.cumsum(shapes.prod(1))[:-1]]).astype(np.int64)
    total = int(shapes.prod(1).sum())
    q = total if queries == "all" else queries
    rng = np.random.default_rng(7)
    value = normal(0, 1, total, 8, 32)
    locations = rng.uniform(0, 1, (1, q, 8, 4, 4, 2)).astype(np.float32)
    if near:
        own = [(np.stack(np.meshgrid(np.arange(w), np.arange(h)), -1) + 0.5) / (w, h) for h, w in shapes]
        middle = np.concatenate([m.reshape(-1, 2) for m in own]).reshape(1, q, 1, 1, 1, 2)
        from_there = 2 * rng.standard_normal(locations.shape) / shapes[:, ::-1].reshape(1, 1, 1, 4, 1, 2)
        locations = (middle + from_there).astype(np.float32)
    weights = torch.from_numpy(rng.standard_normal((1, q, 8, 16))).softmax(-1).reshape(1, q, 8, 4, 4).float().numpy()
    ours = session(
        "mmdeploy::MMCVMultiScaleDeformableAttention",
        {"value": value, "shapes": shapes, "starts": starts, "locations": locations, "weights": weights},
        threads,
    )
    tv, tl, tw = (torch.from_numpy(t) for t in (value, locations, weights))

    def formulation() -> torch.Tensor:
        return attend_by_grids(tv, shapes, tl, tw).transpose(1, 2).reshape(1, q, 256)

    moved = bytes_of(value, locations, weights) + q * 1024
    return Contest(ours, {"torch formulation": with_torch(formulation)}, moved, tolerance=1e-3)


cases.in_half("4 levels, 8 heads x 32, all queries")


def deformable(queries: int | None, dtype: torch.dtype = F32, sizes: Sequence[tuple[int, int]] = LARGE) -> Call:
    """Eight heads of 32 channels, 4 points. None: all pixels are queries."""
    shapes, starts, pixels = levels_of(*sizes)
    queries = queries or pixels
    value, locations = torch.randn(1, pixels, 8, 32), torch.rand(1, queries, 8, 4, 4, 2)
    weights = torch.randn(1, queries, 8, 16).softmax(-1).unflatten(-1, (4, 4))

    def forward(value: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
        return projects.mmcv().ms_deform_attn_forward(value, shapes, starts, locations, weights, 64)

    def backward(grad: Tensor, value: Tensor, locations: Tensor, weights: Tensor) -> list[Tensor]:
        to = [torch.zeros_like(t) for t in (value, locations, weights)]
        projects.mmcv().ms_deform_attn_backward(value, shapes, starts, locations, weights, grad, *to, 64)
        return to

    def by_grids(value: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
        """Computes what models do without a kernel."""
        return attend_by_grids(value, sizes, locations, weights).transpose(1, 2).flatten(2)

    call = Call(
        lambda v, p, w: torch.ops.polyop.ms_deform_attn(v, shapes, starts, p, w),
        [t.to(dtype) for t in (value, locations, weights)],
        {"torch": by_grids},
    )
    return call.against_mmcv(forward, backward)


cases.differentiable("4 levels, 900 queries", F32, F16)(lambda dtype: deformable(900, dtype))
cases.differentiable("4 levels, all pixels as queries", F32, F16)(lambda dtype: deformable(None, dtype))
cases.gradient("ms_deform_attn, 4 levels, 2,000 queries")(lambda: deformable(2000, F32, SMALL))
cases.gradient("ms_deform_attn, 4 levels, all pixels as queries")(lambda: deformable(None, F32, SMALL))
cases.growth("queries and pixels", 1000, MILLION)(lambda n: attention("ms_deform_attn", n))
cases.small([(2, 26, 2, 3), torch.tensor([[4, 5], [2, 3]]), torch.tensor([0, 20]), (2, 3, 2, 2, 2, 2), (2, 3, 2, 2, 2)])
