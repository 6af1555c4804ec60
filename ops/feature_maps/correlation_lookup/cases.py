# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
import torch.nn.functional as F
from benchmark import F32, Call, Cases, Contest, of
from contenders import normal, session, with_torch

cases = Cases(__file__)


@cases.cpu("55x128 pixels, maps of 55x128, radius 4")
def _(threads: int) -> Contest:
    """RAFT's lookup at 1/8 of 440 x 1024 pixels, in one level of the pyramid."""
    height, width, radius = 55, 128, 4
    volume = normal(0, 1, height, width, height, width)
    flow = np.stack(np.meshgrid(np.arange(width), np.arange(height)))[None] + normal(1, 1, 2, height, width) * 5
    coords = flow.astype(np.float32)
    ours = session("polyop::CorrelationLookup", {"volume": volume, "coords": coords}, threads)
    maps = torch.from_numpy(volume).view(-1, 1, height, width)
    steps = torch.arange(-radius, radius + 1).float()
    window = torch.stack(torch.meshgrid(steps, steps, indexing="ij"), 2)  # RAFT's order: rows vary fastest

    def formulation() -> torch.Tensor:
        at = torch.from_numpy(coords).permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) + window
        grid = 2 * at / torch.tensor([width - 1, height - 1]) - 1
        samples = F.grid_sample(maps, grid, align_corners=True)
        return samples.view(1, height, width, -1).permute(0, 3, 1, 2).contiguous()

    return Contest(ours, {"torch grid_sample": with_torch(formulation)}, tolerance=1e-3)


@cases.differentiable("3,072 pixels, maps of 48x64, radius 4")
def looked_up(dtype: torch.dtype, rows: int = 48) -> Call:
    return of("correlation_lookup", [torch.randn(1, rows, 64, rows, 64), torch.rand(1, 2, rows, 64) * 48])


cases.gradient("correlation_lookup 2,048 pixels, maps of 32x64, radius 4")(lambda: looked_up(F32, 32))
cases.small([(2, 3, 4, 5, 6), lambda: torch.rand(2, 2, 3, 4) * 6], radius=[2, 1])
