# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Call, Cases, Contest, call
from contenders import bytes_of, normal, session, with_torch
from inputs import MILLION, gaussian

cases = Cases(__file__)


@cases.cpu("20,000 pairs of boxes")
def _(threads: int) -> Contest:
    mask = np.random.default_rng(44).random((1, 20000, 24)) < 0.25
    mask &= mask.cumsum(2) <= 8
    vertices = normal(45, 1, 20000, 24, 2) * mask[..., None]
    feeds = {"vertices": vertices, "mask": mask, "num_valid": mask.sum(2).astype(np.int32)}
    ours = session("polyop::DiffIoURotatedSortVertices", feeds, threads)
    tv, tm, tn = (torch.from_numpy(t) for t in feeds.values())

    def formulation() -> torch.Tensor:
        angle = torch.atan2(tv[..., 1], tv[..., 0])
        angle = torch.where(tm, torch.where(angle < 0, angle + 2 * torch.pi, angle), torch.inf)
        order = angle.sort(dim=-1, stable=True).indices[..., :9]
        count, position = tn[..., None], torch.arange(9)
        free = 8 + tm[..., 8:].to(torch.uint8).argmin(-1, keepdim=True)
        sorted_ = torch.where(position < count, order, torch.where(position == count, order[..., :1], free))
        return torch.where(count < 3, free, sorted_).to(torch.int32)

    return Contest(
        ours,
        {"torch formulation": with_torch(formulation)},
        bytes_of(*feeds.values()) + 20000 * 36,
        same=lambda a, b: (a[0] == b[0]).mean() > 0.9999,
    )


@cases.growth("pairs of boxes", 1000, MILLION)
def _(n: int) -> Call:
    """Eight of 24 slots of each pair."""
    mask = torch.zeros(1, n, 24, dtype=torch.bool)
    mask[..., :8] = True
    return call("diff_iou_rotated_sort_vertices", gaussian(1, n, 24, 2), mask, torch.full((1, n), 8, dtype=torch.int32))
