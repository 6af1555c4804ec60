# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, Cases, of
from inputs import MILLION

from ops.deform.cases import SMALL, attention, levels_of

cases = Cases(__file__)


@cases.gradient("ms_deform_attn_by_head, 4 levels, 2,000 queries")
def _() -> Call:
    shapes, starts, pixels = levels_of(*SMALL)
    locations, weights = torch.rand(1, 2000, 8, 4, 4, 2), torch.rand(1, 2000, 8, 4, 4)
    return of("ms_deform_attn_by_head", [torch.randn(1, pixels, 8, 32), shapes, starts, locations, weights], (0, 3, 4))


cases.growth("queries and pixels", 1000, MILLION)(lambda n: attention("ms_deform_attn_by_head", n))
cases.small([(2, 26, 2, 3), torch.tensor([[4, 5], [2, 3]]), torch.tensor([0, 20]), (2, 3, 2, 2, 2, 2), (2, 3, 2, 2, 2)])
