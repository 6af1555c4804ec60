# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Call, Cases, Contest, of
from contenders import bytes_of, normal, session, with_torch
from inputs import MILLION

from ops.deform.cases import SMALL, attend_by_grids, attention, levels_of

cases = Cases(__file__)


@cases.cpu("4 levels, 8 heads x 32, 10,000 queries x 8 points")
def _(threads: int) -> Contest:
    """BEVFormer's attention to one camera: four reference points per pillar, eight points per level."""
    shapes = np.array([[58, 100], [29, 50], [15, 25], [8, 13]], np.int32)
    total, q, rng = int(shapes.prod(1).sum()), 10_000, np.random.default_rng(8)
    value, logits = normal(0, 1, total, 8, 32), normal(1, 1, q, 8, 32)
    references = rng.uniform(0, 1, (1, q, 1, 8)).astype(np.float32)
    offsets = 3 * normal(2, 1, q, 8, 64)
    feeds = {"value": value, "shapes": shapes, "references": references, "offsets": offsets, "logits": logits}
    ours = session("polyop::MultiScaleDeformableAttnTRT", feeds, threads)
    tv, tr, to, tw = (torch.from_numpy(t) for t in (value, references, offsets, logits))
    sizes = torch.from_numpy(shapes).flip(1).reshape(1, 1, 1, 4, 1, 2)

    def formulation() -> torch.Tensor:
        centre = tr.view(1, q, 1, 1, 1, 4, 2)
        at = (centre + to.view(1, q, 8, 4, 2, 4, 2) / sizes[..., None, :]).flatten(4, 5)
        weights = tw.softmax(-1).view(1, q, 8, 4, 8)
        return attend_by_grids(tv, shapes, at, weights).transpose(1, 2)

    moved = bytes_of(value, references, offsets, logits) + q * 1024
    return Contest(ours, {"torch formulation": with_torch(formulation)}, moved, tolerance=1e-3)


@cases.gradient("ms_deform_attn_of_offsets, 4 levels, 2,000 queries")
def _() -> Call:
    shapes, _, pixels = levels_of(*SMALL)
    inputs = [torch.randn(1, pixels, 8, 32), shapes, torch.rand(1, 2000, 1, 4), torch.randn(1, 2000, 8, 32)]
    return of("ms_deform_attn_of_offsets", [*inputs, torch.randn(1, 2000, 8, 16)], (0, 2, 3, 4))


cases.growth("queries and pixels", 1000, MILLION)(lambda n: attention("ms_deform_attn_of_offsets", n))
cases.small([(2, 26, 2, 3), torch.tensor([[4, 5], [2, 3]]), (2, 3, 1, 4), (2, 3, 2, 16), (2, 3, 2, 8)])
